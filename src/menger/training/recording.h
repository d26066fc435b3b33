#pragma once

#include "menger/collectors/policy.h"
#include "menger/environments/environment.h"
#include "menger/training/evaluation.h"
#include "menger/training/video_file.h"

namespace menger {

// Plays the plan's episodes one after the other in an environment that can Render, and adds what it
// looks like after the reset and after each step to the video. Otherwise as Evaluate, for as many
// episodes as one wants to look at. The video is not finished here.
EvaluationResult Record(const EvaluationPlan& plan, const EnvironmentEntry& environment,
                        Policy& policy, VideoFile& video);

}  // namespace menger
