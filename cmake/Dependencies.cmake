# Third-party packages, all from Debian 12 except torch. Protobuf comes before torch: the wheel's CMake file defines an
# empty protobuf target of its own.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(Protobuf REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(box2d REQUIRED)
find_package(GIF REQUIRED)
find_library(XXHASH_LIBRARY xxhash REQUIRED)
find_library(ZSTD_LIBRARY zstd REQUIRED)
find_package(OpenSSL REQUIRED)
find_library(HIREDIS_LIBRARY NAMES libhiredis.a hiredis REQUIRED)
find_path(ASIO_HEADERS asio.hpp REQUIRED)  # Standalone: headers alone.
if(MENGER_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

# torch lives in the virtual environment's wheel. Its include folder carries old copies of fmt and protobuf, so a folder
# of links to the system's goes first.
if(MENGER_TORCH)
  # Finding the wheel's folder does not import it: that takes seconds, and Python packages that a build does not need.
  execute_process(
    COMMAND ${MENGER_PYTHON} -c
      "import importlib.util, os; print(os.path.dirname(importlib.util.find_spec('torch').origin))"
    OUTPUT_VARIABLE TORCH_FOLDER OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE TORCH_MISSING)
  if(TORCH_MISSING)
    message(FATAL_ERROR "no torch in ${MENGER_PYTHON}: run `make setup`, or configure with -DMENGER_TORCH=OFF")
  endif()
  set(SHADOWS ${menger_BINARY_DIR}/system_headers)
  file(MAKE_DIRECTORY ${SHADOWS})
  foreach(header google fmt)
    file(CREATE_LINK /usr/include/${header} ${SHADOWS}/${header} SYMBOLIC)
  endforeach()
  # The wheel's TorchConfig.cmake hard-codes checks (CUDA, Caffe2) that a CPU build does not need: an imported target is
  # all that is used here. Of the libraries only the CPU half is linked: libtorch.so of a CUDA wheel would load gigabytes
  # of CUDA libraries, or fail to, on a machine without a GPU. Whoever wants CUDA opens libtorch_cuda.so at run time.
  add_library(menger_libtorch INTERFACE)
  target_include_directories(menger_libtorch BEFORE INTERFACE ${SHADOWS})
  target_include_directories(menger_libtorch SYSTEM INTERFACE
    ${TORCH_FOLDER}/include ${TORCH_FOLDER}/include/torch/csrc/api/include)
  target_link_libraries(menger_libtorch INTERFACE
    -Wl,--no-as-needed ${TORCH_FOLDER}/lib/libtorch_cpu.so -Wl,--as-needed ${TORCH_FOLDER}/lib/libc10.so)
  target_link_options(menger_libtorch INTERFACE -Wl,-rpath,${TORCH_FOLDER}/lib)
endif()

# MuJoCo too lives in the virtual environment: the wheel has headers and libmujoco.so, Gymnasium's package the models.
set(MENGER_MUJOCO AUTO CACHE STRING "Build libmenger_mujoco.so: ON, OFF, or AUTO where the wheel is installed")
set(MUJOCO_FOUND FALSE)
if(MENGER_MUJOCO)
  execute_process(
    COMMAND ${MENGER_PYTHON} -c "import importlib.util as u, os
for name in ('mujoco', 'gymnasium'): print(os.path.dirname(u.find_spec(name).origin))"
    OUTPUT_VARIABLE folders OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE missing)
  string(REPLACE "\n" ";" folders "${folders}")
  if(NOT missing)
    list(GET folders 0 MUJOCO_FOLDER)
    list(GET folders 1 MUJOCO_MODELS)
    string(APPEND MUJOCO_MODELS "/envs/mujoco/assets")
    file(GLOB MUJOCO_LIBRARY "${MUJOCO_FOLDER}/libmujoco.so.*")
    add_library(menger_libmujoco INTERFACE)
    target_include_directories(menger_libmujoco SYSTEM INTERFACE ${MUJOCO_FOLDER}/include)
    target_link_libraries(menger_libmujoco INTERFACE ${MUJOCO_LIBRARY})
    target_link_options(menger_libmujoco INTERFACE -Wl,-rpath,${MUJOCO_FOLDER})
    set(MUJOCO_FOUND TRUE)
  elseif(NOT MENGER_MUJOCO STREQUAL "AUTO")
    message(FATAL_ERROR "no mujoco and gymnasium in ${MENGER_PYTHON}: run `make mujoco`, or configure with -DMENGER_MUJOCO=OFF")
  endif()
endif()
