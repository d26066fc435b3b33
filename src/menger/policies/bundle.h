#pragma once

#include <string>

#include "menger/algorithms/policy_description.h"

namespace menger {

// The bytes of a bundle (bundle_format.h): what libmenger_policy and Python's menger.load read.
// `about` is JSON that says what it is. Throws InvalidArgument if an array has 2^31 floats or more.
std::string BundleOf(const PolicyDescription& policy, const std::string& about);

}  // namespace menger
