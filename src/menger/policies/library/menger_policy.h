#ifndef MENGER_POLICY_H
#define MENGER_POLICY_H

/* Acts with what `menger export --format bundle` wrote: the C interface of libmenger_policy.so,
 * C99.
 *
 *     menger_policy* policy = menger_policy_open("policy.menger", error, sizeof error);
 *     menger_player* player = menger_player_new(policy);
 *     float observation[4] = ...;
 *     const void* observations[] = {observation};
 *     int64_t action;
 *     menger_player_reset(player);                       (before each episode)
 *     menger_player_act(player, observations, &action);  (at each step)
 *     menger_player_delete(player);
 *     menger_policy_close(policy);
 *
 * A policy is what was read. It never changes; any threads share it. A player holds the memory of
 * one episode: frames that are stacked, the state of a recurrent network. One thread at a time uses
 * a player; episodes that are played side by side have a player each. Acting allocates nothing.
 * Actions are greedy, as those of `menger evaluate`. A policy outlives its players. */

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct menger_policy menger_policy;
typedef struct menger_player menger_player;

/* C's names. NOLINTBEGIN(readability-identifier-naming) */
enum menger_type {
  MENGER_UINT8 = 0,
  MENGER_INT32 = 1,
  MENGER_INT64 = 2,
  MENGER_FLOAT32 = 3,
  MENGER_FLOAT64 = 4
};
/* NOLINTEND(readability-identifier-naming) */

/* An array that a policy reads or writes, dense and row-major. Valid while the policy is. */
typedef struct {
  const char* name;     /* "observation", "observation/position", "action_mask", "action", ... */
  int32_t type;         /* Of an element: enum menger_type. */
  int32_t dimensions;   /* How many numbers `shape` has; 0: one element. */
  const int64_t* shape; /* Images are [channels, height, width]. */
  int64_t elements;     /* Their product. */
} menger_array;

/* What a call of menger_player_act found. NOLINTBEGIN(readability-identifier-naming) */
enum menger_result {
  MENGER_ACTED = 0,
  MENGER_NO_SUCH_CHOICE = 1,  /* An int64 observation is not below its number of choices, or is
                                 negative: there is no action, and the step is not remembered. */
  MENGER_NOTHING_ALLOWED = 2, /* The action mask allows nothing; what it decides is 0. */
  MENGER_NO_PLAYER = 3        /* The player or an array is null. */
};
/* NOLINTEND(readability-identifier-naming) */

/* Reads a bundle. Null if it cannot: then `error` (of `error_size` bytes, which may be 0) says why
 * in one line. */
menger_policy* menger_policy_open(const char* path, char* error, size_t error_size);
void menger_policy_close(menger_policy* policy); /* Null: nothing happens. */

/* JSON: "run", "checkpoint", "environment", "algorithm", "network", "precision", "build". */
const char* menger_policy_about(const menger_policy* policy);

int32_t menger_policy_observations(const menger_policy* policy); /* How many arrays it reads. */
menger_array menger_policy_observation(const menger_policy* policy, int32_t index);
menger_array menger_policy_action(const menger_policy* policy);

/* Null if there is no memory. It begins an episode. */
menger_player* menger_player_new(const menger_policy* policy);
void menger_player_delete(menger_player* player); /* Null: nothing happens. */

/* Forgets: the next observation is the first of an episode. */
void menger_player_reset(menger_player* player);

/* Reads one array for each observation of the policy, in its order, and writes the action: int64
 * numbers of choices, or float32 numbers. Arrays are borrowed for the call; each is aligned as its
 * elements are, and holds finite numbers: that is not looked for, and an action for others means
 * nothing. Returns enum menger_result. */
int32_t menger_player_act(menger_player* player, const void* const* observations, void* action);

/* What the last action was chosen by: the logit or the expected return of each choice, or the
 * action before it was clipped. Overwritten by the next call. */
const float* menger_player_outputs(const menger_player* player, int32_t* count);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
