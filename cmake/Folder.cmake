# menger_folder(NAME [ONE_THREAD] [LIBRARIES ...] [ROOMS ...] [TEST_MAIN FILE]): one static library from the *.cc of the current
# folder and of its rooms, one test program from their *_test.cc. New files are picked up when CMake is run again. A test whose
# name contains "Slow" (seconds, not milliseconds) gets the label `slow` and is left out of sanitizer runs. Tests that start no
# thread and share nothing (ONE_THREAD) are not made for ThreadSanitizer.
function(menger_folder name)
  cmake_parse_arguments(FOLDER "ONE_THREAD" "TEST_MAIN" "LIBRARIES;TEST_LIBRARIES;ROOMS" ${ARGN})
  list(TRANSFORM FOLDER_ROOMS APPEND "/*.cc" OUTPUT_VARIABLE of_rooms)
  list(TRANSFORM FOLDER_ROOMS APPEND "/*_test.cc" OUTPUT_VARIABLE tests_of_rooms)
  file(GLOB sources CONFIGURE_DEPENDS "*.cc" ${of_rooms})
  file(GLOB tests CONFIGURE_DEPENDS "*_test.cc" ${tests_of_rooms})
  if(tests)
    list(REMOVE_ITEM sources ${tests})
  endif()
  if(sources)
    add_library(menger_${name} STATIC ${sources})
    target_include_directories(menger_${name} PUBLIC "${menger_SOURCE_DIR}/src")
    target_compile_features(menger_${name} PUBLIC cxx_std_20)
    target_link_libraries(menger_${name} PUBLIC ${FOLDER_LIBRARIES})
    menger_compile_in_groups(menger_${name})
  else()
    add_library(menger_${name} INTERFACE)
    target_include_directories(menger_${name} INTERFACE "${menger_SOURCE_DIR}/src")
    target_link_libraries(menger_${name} INTERFACE ${FOLDER_LIBRARIES})
  endif()
  if(MENGER_TESTS AND tests AND NOT (FOLDER_ONE_THREAD AND MENGER_SANITIZE STREQUAL "thread"))
    add_executable(menger_${name}_test ${tests} ${FOLDER_TEST_MAIN})
    if(FOLDER_TEST_MAIN)
      set(gtest GTest::gtest)
    else()
      set(gtest GTest::gtest_main)
    endif()
    target_link_libraries(menger_${name}_test PRIVATE menger_${name} ${FOLDER_TEST_LIBRARIES} GTest::gmock ${gtest})
    menger_compile_in_groups(menger_${name}_test)
    if(MENGER_SANITIZE)
      target_compile_options(menger_${name}_test PRIVATE -O0)
    endif()
    target_compile_definitions(menger_${name}_test PRIVATE
      MENGER_SOURCE_FOLDER="${menger_SOURCE_DIR}" MENGER_SANITIZER="${MENGER_SANITIZE}")
    gtest_discover_tests(menger_${name}_test TEST_PREFIX "${name}." TEST_FILTER "-*Slow*" DISCOVERY_TIMEOUT 120
      PROPERTIES TIMEOUT 240)
    gtest_discover_tests(menger_${name}_test TEST_PREFIX "${name}." TEST_FILTER "*Slow*" DISCOVERY_TIMEOUT 120
      PROPERTIES TIMEOUT 600 LABELS slow COST 50)  # The longest begin first.
  endif()
endfunction()
