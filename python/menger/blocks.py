"""The environments of one block of columns, stepped one by one (Block) or as one batch (VectorBlock).

Both keep the slab's contract: an episode that ends leaves its last observation in the side buffer and the next one begins in
the following row. Menger has cleared the row's flags before a step, so only what differs is written.
"""

import math
import sys
import time

import numpy
from numpy import ndarray

from menger.control import Failure, Refused
from menger.making import users_failure, with_sentence
from menger.metrics import Metrics
from menger.rows import Rows
from menger.spaces import (action_leaf, action_reader, batch_action_reader, left_out, mask_index, observation_leaves,
                           random_action)  # fmt: skip
from menger.values import check_step, reset_observation, reward_of, shown

_SLOW_SECONDS = 0.05  # After a pass that takes longer each environment tells menger that it lives,
_NOTHING = object()  # What a step has returned that has not.
_SELDOM = 3  # else those do whose index has none of these bits: to tell costs as much as a cheap environment.


def left_out_of(environment, vector):
    return left_out(environment.single_observation_space if vector else environment.observation_space)


def leaves_of(environment, vector):
    observation = environment.single_observation_space if vector else environment.observation_space
    action = action_leaf(environment.single_action_space if vector else environment.action_space)
    return observation_leaves(observation, action.counts[0] if action.kind == "discrete" else 0), action


def close_told(environment, place=""):
    """Closes an environment. Whether it fails changes nothing any more: that is told, and the others are closed all the same.

    Menger says whose words it prints; `place` says which of them.
    """
    try:
        environment.close()
    except Exception as error:
        print(users_failure(place, ", close (nothing is lost)" if place else "close (nothing is lost)", error), file=sys.stderr)


class _Parts:
    """What both kinds of blocks have: places, metrics, what there is to tell."""

    def __init__(self, maker, control, attachment):
        self.maker, self.control = maker, control
        group = attachment["group"]
        self.count, self.first = group["count"], group["first_environment"]
        self.seed = group["seed"] + self.first  # Of column 0.
        self.same_step = group["reset_mode"] == "same_step"
        self.parked = [False] * self.count
        self.any_parked = False
        self.ever_reset = False
        self.metrics, self._restarts = Metrics(maker.metrics), []

    def shown(self, environment, place):
        """What render() of an environment returns."""
        try:
            return environment.render()
        except NotImplementedError:
            raise Failure(f"{self.maker.name} has no render(): to be recorded, it must return one array [height, width, 3]") from None
        except BaseException as error:
            raise users_failure(self.maker.name, f" {place}, render", error) from None

    def picture(self, image):
        """What menger reads of a rendered frame: width and height as int32, then RGB."""
        if not isinstance(image, numpy.ndarray) or image.ndim != 3 or image.shape[2] != 3:
            raise Failure(f"{self.maker.name} renders {type(image).__name__}; an array [height, width, 3] is needed")
        height, width = image.shape[:2]
        return numpy.array([width, height], numpy.int32).tobytes() + numpy.ascontiguousarray(image, numpy.uint8).tobytes()

    def mask_of(self, row, i):
        """The flags of the actions that the observation in a row and column allows; None where it has none."""
        index = mask_index(self.leaves)
        return None if index is None else self.rows.observation[index][row][i]

    @property
    def any_news(self):
        return self._restarts or self.metrics.any_news

    def tell(self):
        """What is to be said with the reply; once."""
        said = {**self.metrics.take(), "restarts": self._restarts}
        self._restarts = []
        return said


class Block(_Parts):
    def __init__(self, maker, control, attachment):
        super().__init__(maker, control, attachment)
        self.environments = []
        self.steps = []
        for i in range(self.count):
            self.environments.append(maker.make(f" {self._place(i)}"))
            self.steps.append(self.environments[i].step)
            control.progress()
        self.leaves, action = leaves_of(self.environments[0], vector=False)
        self.rows = Rows(attachment, self.leaves, action)
        self.actions = action_reader(action, attachment["group"]["clip_actions"])
        self.action_space = self.environments[0].action_space
        self.restarts = [0] * self.count
        self.slow = True
        single = len(self.leaves) == 1 and self.leaves[0].plain
        self._exact = (self.leaves[0].users_shape, self.leaves[0].storage)
        self._put_observation = None if single else self._put_leaves

    def render(self, i):
        """What environment `i` looks like."""
        return self.picture(self.shown(self.environments[i], self._place(i)))

    def close(self):
        for i, environment in enumerate(self.environments):
            close_told(environment, self._place(i))

    # Requests.

    def reset(self, row):
        for i in range(self.count):
            self._reset_column(row, i)
            self.control.progress()
        self.parked = [False] * self.count
        self.any_parked = False
        self.ever_reset = True

    def reset_parked(self, row):
        for i in range(self.count):
            if self.parked[i]:
                self._reset_column(row, i)
                self.parked[i] = False
                self.control.progress()
        self.any_parked = False

    def step(self, row):
        begin = time.perf_counter()
        if self._put_observation is None and not self.any_parked:
            self._step_plain(row)
        else:
            self._step_any(row)
        self.slow = time.perf_counter() - begin > _SLOW_SECONDS

    def step_randomly(self, row, steps, seed):
        for i, count in enumerate(steps):
            random = numpy.random.Generator(numpy.random.PCG64([seed, self.first + i]))
            for k in range(count):
                try:
                    action = random_action(self.action_space, random, self.mask_of(row, i))
                    result = self.steps[i](action)
                    check_step(result)
                    observation, _, terminated, truncated, _ = result
                    if terminated or truncated:
                        observation = reset_observation(self.environments[i].reset())
                    self._put(row, i, observation)
                except BaseException as error:
                    self._restart(i, error, f"random step {k}", lambda i=i: self._start(row, i))
                self.control.progress()
            self.rows.is_first[row][i] = 1

    # One step of all columns: the two loops differ in nothing but speed.

    def _step_plain(self, row):
        observations = self.rows.observation[0][row + 1]
        rewards = self.rows.reward[row]
        actions = self.actions(self.rows.action[row])
        progress, seldom = self.control.progress, 0 if self.slow else _SELDOM
        steps, count, i = self.steps, self.count, 0
        (shape, dtype), value = self._exact, self.leaves[0].value
        while i < count:
            try:
                for i in range(i, count):
                    result = _NOTHING
                    result = steps[i](actions[i])
                    observation, reward, terminated, truncated, info = result
                    if type(observation) is ndarray and observation.dtype is dtype and observation.shape == shape:
                        observations[i] = observation
                    else:
                        observations[i] = value(observation)
                    rewards[i] = reward
                    if terminated or truncated:
                        self._end(row, i, observation, terminated, truncated, info)
                    if not i & seldom:
                        progress()
                return
            except BaseException as error:
                self._cut(row, i, cause_of(error, result))
                i += 1

    def _step_any(self, row):
        rewards = self.rows.reward[row]
        actions = self.actions(self.rows.action[row])
        progress, seldom = self.control.progress, 0 if self.slow else _SELDOM
        for i in range(self.count):
            if self.parked[i]:
                self._stand_still(row, i)
                continue
            result = _NOTHING
            try:
                result = self.steps[i](actions[i])
                observation, reward, terminated, truncated, info = result
                self._put(row + 1, i, observation)
                rewards[i] = reward
                if terminated or truncated:
                    self._end(row, i, observation, terminated, truncated, info)
            except BaseException as error:
                self._cut(row, i, cause_of(error, result))
            if not i & seldom:
                progress()

    def _end(self, row, i, observation, terminated, truncated, info):
        rows = self.rows
        rows.terminated[row][i] = bool(terminated)
        rows.truncated[row][i] = bool(truncated)
        rows.episode_end[row][i] = 1
        if self.maker.metrics:
            self.metrics.hear(info)
        self._next_episode(row, i, observation)

    def _next_episode(self, row, i, observation):
        """Keeps the final observation (None: the row's own) and begins, or parks for, the next episode."""
        rows = self.rows
        for leaf, target in enumerate(rows.final):
            target[row][i] = (
                rows.observation[leaf][row][i] if observation is None else self.leaves[leaf].value(observation)
            )
        rows.final_index[row][i] = rows.slot(row, i)
        rows.is_first[row + 1][i] = 1
        if self.same_step:
            if observation is not None:
                self.control.progress()  # A reset may take as long as a step may.
                self._put(row + 1, i, reset_observation(self.environments[i].reset()))
                self.control.progress()
            return
        for leaf, target in enumerate(rows.final):
            rows.observation[leaf][row + 1][i] = target[row][i]
        self.parked[i] = self.any_parked = True

    def _stand_still(self, row, i):
        rows = self.rows
        for observation in rows.observation:
            observation[row + 1][i] = observation[row][i]
        rows.reward[row][i] = 0
        rows.valid[row][i] = 0
        rows.is_first[row + 1][i] = 1

    def refuse(self, row, i, why, begins):
        """Menger has found numbers in the row that it cannot take, a step's or (begins) the first of an episode."""
        error = Refused(why)
        if begins:
            self._restart(i, error, "reset", lambda: self._start(row, i))
        else:
            self._cut(row, i, error)

    # Values.

    def _put(self, row, i, observation):
        if self._put_observation is None:
            self.rows.observation[0][row][i] = self.leaves[0].value(observation)
        else:
            self._put_observation(row, i, observation)

    def _put_leaves(self, row, i, observation):
        for leaf, target in zip(self.leaves, self.rows.observation):
            target[row][i] = leaf.value(observation)

    # Beginnings, and what goes wrong.

    def _reset_column(self, row, i):
        try:
            seed = None if self.ever_reset else self.seed + i
            reset = self.environments[i].reset
            self._put(row, i, reset_observation(reset(seed=seed) if seed is not None else reset()))
            self.rows.is_first[row][i] = 1
        except BaseException as error:
            self._restart(i, error, "reset", lambda: self._start(row, i))

    def _start(self, row, i):
        """A new environment in the place of one that failed; its seed is its own, or the same would come again."""
        try:
            self.environments[i].close()
        except Exception:
            pass  # It has failed already.
        self.environments[i] = self.maker.make(f" {self._place(i)}, after a failure")
        self.steps[i] = self.environments[i].step
        self.restarts[i] += 1
        seed = int(numpy.random.SeedSequence([self.seed + i, self.restarts[i]]).generate_state(1)[0]) >> 1
        self._put(row, i, reset_observation(self.environments[i].reset(seed=seed)))
        self.rows.is_first[row][i] = 1

    def _cut(self, row, i, error):
        """In an except clause of step: the row is lost, and a fresh episode follows."""
        self._restart(i, error, f"step {self.control.first_step() + row}", lambda: self._start(row + 1, i))
        rows = self.rows
        rows.reward[row][i] = 0
        rows.valid[row][i] = 0
        rows.truncated[row][i] = 1
        rows.terminated[row][i] = rows.episode_end[row][i] = 0
        self._next_episode(row, i, None)

    def _restart(self, i, error, when, start):
        """Calls `start` while restarts last, else reports the error."""
        if isinstance(error, Failure):
            raise error
        failure = users_failure(self.maker.name, f" {self._place(i)}, {when}", error)
        if not self.control.take_restart():
            raise failure from None
        self._restarts.append(with_sentence(str(failure), "A fresh episode takes its place."))
        try:
            self.control.progress()
            start()
            self.control.progress()
        except Failure:
            raise
        except BaseException as again:
            raise users_failure(self.maker.name, f" {self._place(i)}, when it was restarted", again) from None

    def _place(self, i):
        return f"environment {self.first + i} (seed {self.seed + i})"


def cause_of(error, result):
    """The error of a step that returned `result` (_NOTHING: it did not), said in the words of what is wrong with that."""
    if result is _NOTHING or isinstance(error, (Failure, Refused)):
        return error
    try:
        check_step(result)
        reward_of(result[1])
    except Refused as refused:
        return refused
    return error


class VectorBlock(_Parts):
    """A gymnasium.vector.VectorEnv with resets in the same step. Its environments cannot be restarted one by one."""

    def __init__(self, maker, control, attachment):
        super().__init__(maker, control, attachment)
        self.environment = maker.make_vector(self.count)
        self.leaves, action = leaves_of(self.environment, vector=True)
        self.rows = Rows(attachment, self.leaves, action)
        self.actions = batch_action_reader(action, attachment["group"]["clip_actions"])
        self.action_space = self.environment.single_action_space

    def render(self, i):
        images = self.shown(self.environment, "batch")
        if images is None or len(images) != self.count:
            raise Failure(f"{self.maker.name} shows nothing: to be recorded, render() of a vector environment must return one "
                          "array [height, width, 3] an environment")  # fmt: skip
        return self.picture(images[i])

    def close(self):
        close_told(self.environment)

    def reset(self, row):
        seed = None if self.ever_reset else self.seed
        self._guard("reset", lambda: self._put(row, reset_observation(self.environment.reset(seed=seed))))
        self.ever_reset = True
        self.rows.is_first[row][:] = 1
        self.parked = [False] * self.count
        self.any_parked = False

    def reset_parked(self, row):
        if not self.any_parked:
            return
        mask = numpy.array(self.parked)

        def reset():
            self._put(row, reset_observation(self.environment.reset(options={"reset_mask": mask})), mask)

        self._guard("reset of some environments (reset_mask)", reset)
        self.rows.is_first[row][mask] = 1
        self.parked = [False] * self.count
        self.any_parked = False

    def step(self, row):
        rows = self.rows
        when = f"step {self.control.first_step() + row}"
        actions = self.actions(rows.action[row])
        terminated, truncated, info = self._guard(when, lambda: self._take(row, self.environment.step(actions)))
        ended = numpy.logical_or(terminated, truncated)
        if self.any_parked:
            ended &= ~numpy.array(self.parked)
        if ended.any():
            rows.terminated[row][:] = numpy.logical_and(terminated, ended)
            rows.truncated[row][:] = numpy.logical_and(truncated, ended)
            rows.episode_end[row][:] = ended
            rows.is_first[row + 1][:] = ended
            for i in numpy.flatnonzero(ended):
                self._guard(when, lambda i=i: self._end(row, int(i), info))
        if self.any_parked:
            self._stand_still(row)

    def _take(self, row, result):
        """Stores what a step of the batch returned, but for ends; returns those and the info."""
        if not isinstance(result, tuple) or len(result) != 5:
            check_step(result)
        observations, rewards, terminated, truncated, info = result
        self._put(row + 1, observations)
        if not isinstance(rewards, ndarray) or rewards.shape != (self.count,) or rewards.dtype.kind not in "fiub":
            raise Refused(f"its rewards are {shown(rewards)}; they must be an array of {self.count} numbers")
        self.rows.reward_arrays[row][:] = rewards
        for name, flags in (("terminated", terminated), ("truncated", truncated)):
            if numpy.shape(flags) != (self.count,):
                raise Refused(f"step returned {shown(flags)} as {name}; it must be an array of {self.count} flags")
        return terminated, truncated, info

    def refuse(self, row, i, why, begins):
        """As of a Block, but nothing can begin again alone."""
        place = "reset" if begins else f"step {self.control.first_step() + row}"
        raise Failure(f"{self.maker.name} environment {self.first + i} (seed {self.seed + i}), {place}: {why}")

    def step_randomly(self, row, steps, seed):
        """All step together: each column is cut loose from the others by its own actions, the longest count decides."""
        randoms = [numpy.random.Generator(numpy.random.PCG64([seed, self.first + i])) for i in range(self.count)]
        for _ in range(max(steps, default=0)):
            actions = numpy.array([random_action(self.action_space, random, self.mask_of(row, i))
                                   for i, random in enumerate(randoms)])  # fmt: skip
            observations, *_ = self._guard("random step", lambda actions=actions: self.environment.step(actions))
            self._put(row, observations)
            self.control.progress()
        self.rows.is_first[row][:] = 1

    def _end(self, row, i, info):
        final = info.get("final_obs", info.get("final_observation"))
        if final is None:
            raise Failure(f"{self.maker.name}: an episode ended but info has no 'final_obs'")
        rows = self.rows
        for leaf, target in zip(self.leaves, rows.final):
            # An array of whole observations, or one array a leaf: Gymnasium's vector environments have either.
            of_objects = isinstance(final, numpy.ndarray) and final.dtype == object
            target[row][i] = leaf.value(final[i]) if of_objects else leaf.batch(final, self.count)[i]
        rows.final_index[row][i] = rows.slot(row, i)
        if self.maker.metrics:
            last = info.get("final_info", info)
            self.metrics.hear(last[i]) if isinstance(last, (list, numpy.ndarray)) else self.metrics.hear(last, i)
        if not self.same_step:
            self.parked[i] = self.any_parked = True
            for observation, target in zip(rows.observation, rows.final):
                observation[row + 1][i] = target[row][i]

    def _stand_still(self, row):
        """Columns that were parked before this step: the batch goes on, they show what they showed."""
        rows = self.rows
        for i in range(self.count):
            if not self.parked[i] or rows.episode_end[row][i]:
                continue
            for observation in rows.observation:
                observation[row + 1][i] = observation[row][i]
            rows.reward[row][i] = 0
            rows.valid[row][i] = 0
            rows.is_first[row + 1][i] = 1

    def _put(self, row, observations, mask=None):
        for leaf, target in zip(self.leaves, self.rows.observation):
            if mask is None:
                target[row][...] = leaf.batch(observations, self.count)
            else:
                target[row][mask] = leaf.batch(observations, self.count)[mask]

    def _guard(self, when, call):
        try:
            return call()
        except Failure:
            raise
        except BaseException as error:
            last = self.first + self.count - 1
            where = f" environments {self.first}..{last} (seeds {self.seed}..{self.seed + self.count - 1}), {when}"
            raise users_failure(self.maker.name, where, error) from None
