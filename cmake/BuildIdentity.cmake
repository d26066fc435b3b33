# menger_add_build_identity(TARGET): compiles the answer of menger/base/build_identity.h into the target. Every build asks git
# again (a few hundredths of a second) but writes the file, and so compiles and links, only when the answer has changed.
#
# The second half of this file is the script that each build runs.
function(menger_add_build_identity target)
  set(generated "${menger_BINARY_DIR}/generated/build_identity.cc")
  set(build_type "${CMAKE_BUILD_TYPE}")
  if(MENGER_SANITIZE)
    string(APPEND build_type "+${MENGER_SANITIZE}")
  endif()
  set(write ${CMAKE_COMMAND} -D SOURCE_FOLDER=${menger_SOURCE_DIR} -D GENERATED=${generated}
    -D VERSION=${PROJECT_VERSION} "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
    -D BUILD_TYPE=${build_type} -P "${menger_SOURCE_DIR}/cmake/BuildIdentity.cmake")
  add_custom_target(menger_build_identity COMMAND ${write} BYPRODUCTS "${generated}"
    COMMENT "Asking git which commit this is" VERBATIM)
  target_sources(${target} PRIVATE "${generated}")
  add_dependencies(${target} menger_build_identity)
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE)
  return()
endif()

function(ask_git result)
  # Git refuses a folder that belongs to somebody else (a container's mount); it is only read here.
  execute_process(COMMAND git -c safe.directory=* -C "${SOURCE_FOLDER}" ${ARGN}
    OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed TIMEOUT 10)
  if(failed)
    set(answer "unknown")
  endif()
  set(${result} "${answer}" PARENT_SCOPE)
endfunction()

set(commit "unknown")
set(commit_date "unknown")
if(EXISTS "${SOURCE_FOLDER}/.git")  # Otherwise git would answer for a repository that these sources merely lie in.
  ask_git(commit rev-parse --short=12 --verify --quiet HEAD)
  ask_git(commit_date log -1 --format=%cs)
  ask_git(changes status --porcelain --untracked-files=no)
  if(NOT commit STREQUAL "unknown" AND NOT changes STREQUAL "")
    string(APPEND commit "+dirty")
  endif()
endif()

file(CONFIGURE OUTPUT "${GENERATED}" @ONLY CONTENT [[
// Written by cmake/BuildIdentity.cmake.
#include "menger/base/build_identity.h"

#include <fmt/format.h>

namespace menger {

const BuildIdentity& ThisBuild() {
  static const BuildIdentity build{.version = "@VERSION@",
                                   .commit = "@commit@",
                                   .commit_date = "@commit_date@",
                                   .compiler = "@COMPILER@",
                                   .build_type = "@BUILD_TYPE@"};
  return build;
}

std::string ToString(const BuildIdentity& build) {
  return fmt::format("menger {} (commit {} of {}, {}, {})", build.version, build.commit, build.commit_date, build.compiler,
                     build.build_type);
}

}  // namespace menger
]])
