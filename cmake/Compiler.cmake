# Language level, warnings, instruction baseline and sanitizers: the same for every target of ours.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# x86-64-v3 everywhere, run-time dispatch above it. No contraction of a*b+c behind our back: environments must equal
# Gymnasium's to the last bit, and kernels that want fused multiply-add ask for it.
# Designated initialisers name what differs from the defaults; g++ 12 would call the rest "missing".
add_compile_options(-Wall -Wextra -Werror -Wno-missing-field-initializers -march=x86-64-v3 -ffp-contract=off)

# To the compiler a source in a group is a file that others include: there a type of an unnamed namespace is no mistake.
if(MENGER_GROUPS AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-subobject-linkage)
endif()

# Instrumented builds keep their assertions, and -O1 halves the time to compile them; tests, whose own code takes no time, are
# compiled in less than half of that once more (cmake/Folder.cmake).
if(MENGER_SANITIZE)
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
endif()
if(MENGER_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # Warnings and options are g++'s. The check of function pointers' types, which g++ does not have, breaks clang 14 where
    # functions have sections.
    add_compile_options(-fno-sanitize=function -Wno-error -Wno-unknown-warning-option -Wno-unused-command-line-argument)
  endif()
elseif(MENGER_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer -Wno-tsan)
  add_link_options(-fsanitize=thread)
elseif(NOT MENGER_SANITIZE STREQUAL "")
  message(FATAL_ERROR "MENGER_SANITIZE is '${MENGER_SANITIZE}'; it must be empty, 'address' or 'thread'")
endif()
