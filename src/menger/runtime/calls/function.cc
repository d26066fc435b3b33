#include "menger/runtime/calls/function.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "menger/base/error.h"
#include "menger/runtime/values/pretty_name.h"

namespace menger {
namespace {

// All callables of the process, newest first. It has to be there before anybody can make it: what
// is on it depends on the program's text alone, and is never changed.
constinit std::atomic<const Function*> newest_function{nullptr};

// The first bytes of the build id in a module's notes; 0 if it has none.
std::uint64_t BuildIdIn(const dl_phdr_info& module, const ElfW(Phdr) & segment) {
  const auto* note = reinterpret_cast<const char*>(module.dlpi_addr + segment.p_vaddr);
  const char* const end = note + segment.p_memsz;
  const std::size_t alignment = std::max<std::size_t>(segment.p_align, 4);
  const auto padded = [&](std::size_t size) {
    return (size + alignment - 1) / alignment * alignment;
  };
  while (note + sizeof(ElfW(Nhdr)) <= end) {
    const auto& header = *reinterpret_cast<const ElfW(Nhdr)*>(note);
    const char* const name = note + sizeof(header);
    const char* const content = note + padded(sizeof(header) + header.n_namesz);
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
        std::memcmp(name, "GNU", 4) == 0) {
      std::uint64_t id = 0;
      std::memcpy(&id, content, std::min<std::size_t>(sizeof(id), header.n_descsz));
      return id;
    }
    note = content + padded(header.n_descsz);
  }
  return 0;
}

// The module that an address lies in.
struct Module {
  std::uintptr_t address = 0;
  FunctionId id;
};

int IdentifyIn(dl_phdr_info* module, std::size_t, void* data) {
  auto& wanted = *static_cast<Module*>(data);
  const std::span<const ElfW(Phdr)> segments(module->dlpi_phdr, module->dlpi_phnum);
  const bool inside = std::ranges::any_of(segments, [&](const ElfW(Phdr) & segment) {
    return segment.p_type == PT_LOAD &&
           wanted.address - module->dlpi_addr - segment.p_vaddr < segment.p_memsz;
  });
  if (!inside) return 0;
  wanted.id.offset = wanted.address - module->dlpi_addr;
  for (const ElfW(Phdr) & segment : segments) {
    if (segment.p_type == PT_NOTE && wanted.id.module == 0) {
      wanted.id.module = BuildIdIn(*module, segment);
    }
  }
  return 1;
}

FunctionId Identify(const void* address) {
  Module module{reinterpret_cast<std::uintptr_t>(address), {}};
  dl_iterate_phdr(&IdentifyIn, &module);
  return module.id;
}

// Whether another file may have a class of the same name: what is in an unnamed namespace, or in a
// function that is static. (Also of some that are called so; it does no harm.)
bool IsOfOneFile(std::string_view mangled) {
  return mangled.find("_GLOBAL__N_") != std::string_view::npos ||
         mangled.find("ZL") != std::string_view::npos;
}

// The library that an address lies in stays when somebody closes it. A program stays anyway, and is
// not found by its name.
void KeepOpen(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return;
  void* const library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  if (library != nullptr) dlclose(library);
}

}  // namespace

std::uint64_t ClassIdentity(const ActorType& actor) {
  const std::string_view name = actor.type->name();
  const std::uint64_t by_name = XXH3_64bits(name.data(), name.size());
  if (!IsOfOneFile(name)) return by_name;
  const FunctionId place = Identify(&actor);
  return XXH3_64bits_withSeed(&place, sizeof(place), by_name);
}

std::uint64_t ProgramBuild() {
  static const std::uint64_t build = Identify(&newest_function).module;
  return build;
}

Function::Function(void (*run)(CallFrame&), const char* compiler_name,
                   const ActorType* actor) noexcept
    : run_(run),
      compiler_name_(compiler_name),
      actor_(actor),
      actor_class_(actor != nullptr ? ClassIdentity(*actor) : 0),
      // The address of this object, not of `run`: a linker may fold functions of equal code.
      id_(Identify(this)),
      next_(newest_function.load(std::memory_order_relaxed)) {
  if (next_ == nullptr || next_->id().module != id_.module) KeepOpen(this);
  while (!newest_function.compare_exchange_weak(next_, this, std::memory_order_release,
                                                std::memory_order_relaxed)) {
  }
}

std::string Function::name() const { return PrettyName(compiler_name_); }

FunctionTable::FunctionTable() { Fill(); }

void FunctionTable::Fill() {
  newest_ = newest_function.load(std::memory_order_acquire);
  std::size_t count = 0;
  for (const Function* function = newest_; function != nullptr; function = function->next_) ++count;
  slots_.assign(std::bit_ceil(2 * count + 2), nullptr);
  for (const Function* function = newest_; function != nullptr; function = function->next_) {
    if (function->id().module == 0) {
      throw FailedPrecondition(
          "'{}' lies in a program or library that has no build id: link it with -Wl,--build-id",
          function->name());
    }
    std::size_t slot = Hash(function->id());
    while (slots_[slot & (slots_.size() - 1)] != nullptr) ++slot;
    slots_[slot & (slots_.size() - 1)] = function;
  }
}

const Function& FunctionTable::FindAmongNew(FunctionId id) {
  if (newest_ != newest_function.load(std::memory_order_acquire)) {
    Fill();
    if (const Function* const found = Look(id); found != nullptr) return *found;
  }
  throw NotFound(
      "no callable of this process has the id {:016x}:{:x}: it is of another build, or of a "
      "library "
      "that was not opened here",
      id.module, id.offset);
}

}  // namespace menger
