"""`menger check`: plays an environment for a few seconds and says what is wrong with it, in the order in which to mend it."""

import linecache
import math
import os
import time
import traceback

import numpy

from menger.blocks import close_told, leaves_of, left_out_of
from menger.control import Failure, Refused
from menger.making import Maker
from menger.spaces import mask_index, random_action
from menger.values import check_step, hint_of, reset_observation, reward_of

_STEPS = 2000
_SECONDS = 2.0
_REPEATED = 200  # Steps that are played twice with one seed.
_SEED = 7
_OWN = os.path.dirname(os.path.abspath(__file__))


class Findings:
    """What was found, each text once."""

    def __init__(self):
        self.list = []
        self._said = set()

    def fault(self, text):
        self._add(text, True)

    def note(self, text):
        self._add(text, False)

    def _add(self, text, fault):
        if text not in self._said:
            self._said.add(text)
            self.list.append({"fault": fault, "text": text})


def users_line(error):
    """ "file:line: text" of the last place in the user's code, or ""; that of packages where there is none."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_OWN)]
    own = [frame for frame in frames if "site-packages" not in frame.filename and os.path.exists(frame.filename)]
    if not frames:
        return ""
    last = (own or frames)[-1]
    return f" ({last.filename}:{last.lineno}: {linecache.getline(last.filename, last.lineno).strip()})"


def told(error):
    text = str(error) if isinstance(error, Refused) else f"{type(error).__name__}: {error}"
    return text + users_line(error) + hint_of(error).replace("\n", ". ")


class Player:
    """Plays one environment with random actions of those allowed; whatever it finds is a finding."""

    def __init__(self, environment, findings, doing):
        self.environment, self.findings, self._doing = environment, findings, doing
        self.leaves, _ = leaves_of(environment, vector=False)
        self.random = numpy.random.default_rng(_SEED)
        self.steps, self.episodes, self.busy = 0, 0, 0.0
        self.masked_by = mask_index(self.leaves)
        self.mask = None  # Of the last observation.
        self.looks = 0
        self.outside = {}  # The first value out of bounds and how many observations had one, by leaf.

    def play(self, steps, seconds):
        """The observations and rewards as texts of bytes, or None where an error ended it."""
        seen, begin = [], time.perf_counter()
        self._doing(f"reset(seed={_SEED})", True)
        try:
            seen.append(self._reset(seed=_SEED))
            for _ in range(steps):
                if time.perf_counter() - begin > seconds:
                    break
                seen.append(self._step())
        except (Exception, SystemExit) as error:
            where = f"step {self.steps}" if seen else f"reset(seed={_SEED})"
            self.findings.fault(f"{where}: {told(error)}")
            return None
        return seen

    def _reset(self, **arguments):
        return self._look(reset_observation(self.environment.reset(**arguments)), "reset")

    def _step(self):
        self._doing(f"step {self.steps}", True)
        action = random_action(self.environment.action_space, self.random, self.mask)
        begin = time.perf_counter()
        result = self.environment.step(action)
        self.busy += time.perf_counter() - begin
        check_step(result)
        observation, reward, terminated, truncated, info = result
        number = reward_of(reward)
        if not math.isfinite(number):
            raise Refused(f"its reward is {number}; it must be a finite number")
        if not isinstance(info, dict):
            self.findings.fault(f"step {self.steps}: info is {type(info).__name__}; it must be a dict")
        seen = self._look(observation, f"step {self.steps}") + repr(number)
        self.steps += 1
        if terminated or truncated:
            self.episodes += 1
            self._doing(f"reset after step {self.steps - 1}", True)
            seen += self._reset()
        return seen

    def _look(self, observation, when):
        seen = ""
        self.looks += 1
        for index, leaf in enumerate(self.leaves):
            value = leaf.value(observation)
            if index == self.masked_by:
                self.mask = value
            self._look_at(leaf, numpy.asarray(leaf.entry(observation)), when)
            seen += repr(numpy.asarray(value).tobytes())
        return seen

    def _look_at(self, leaf, given, when):
        """What is taken all the same, or found in whole rows by menger itself when it trains."""
        if given.dtype.kind == "f" and not numpy.isfinite(given).all():
            raise Refused(f"its '{leaf.name}' holds a number that is not finite: {given.ravel()[:8]}")
        said = numpy.dtype(leaf.space.dtype)
        if given.dtype != said and not (given.dtype.kind == "i" and said.kind == "i"):
            self.findings.note(f"'{leaf.name}' is {given.dtype.name} where its space says {said.name}: it is converted at every "
                               "step")  # fmt: skip
        if leaf.kind == "box" and ((given < leaf.space.low).any() or (given > leaf.space.high).any()):
            k = numpy.argwhere((given < leaf.space.low) | (given > leaf.space.high))[0]
            place = tuple(int(i) for i in k)
            element = f"element {place} of its '{leaf.name}'" if place else f"its '{leaf.name}'"
            text = (f"{when}: {element} is {given[place].item()!r}, outside its bounds {leaf.space.low[place].item()!r} "
                    f"to {leaf.space.high[place].item()!r}")  # fmt: skip
            first, count = self.outside.get(leaf.name, (text, 0))
            self.outside[leaf.name] = first, count + 1
        if leaf.kind in ("discrete", "multi_discrete") and not leaf.space.contains(_as_element(leaf.space, given)):
            raise Refused(f"its '{leaf.name}' is {given.tolist()!r}, which is not in {leaf.space}")
        if leaf.kind == "mask" and (given.astype(numpy.int64) >> 1).any():
            raise Refused(f"its '{leaf.name}' is {given.tolist()!r}; a flag is 0 or 1")


    def tell_bounds(self):
        """One note a leaf, however often it was outside."""
        for text, count in self.outside.values():
            self.findings.note(f"{text}; {count} of {self.looks} observations left them")


def _as_element(space, given):
    return int(given) if given.shape == () else given.astype(space.dtype)


def check(request, doing):
    """{"findings": [{"fault", "text"}...], "speed": steps a second of one environment alone, or 0}.

    `doing(what, playing)` is told at what it is."""
    findings = Findings()
    environment = None
    doing("when it was made", False)
    try:
        maker = Maker(request)
        if maker.vector:
            raise Failure("a vector environment is checked as a single one: leave host.vector off")
        environment = maker.make()
        player = Player(environment, findings, doing)
    except Exception as error:
        findings.fault(str(error) if isinstance(error, Failure) else f"its spaces: {told(error)}")
        return {"findings": findings.list, "speed": 0}
    for name in left_out_of(environment, vector=False):
        findings.note(f"its '{name}' is Text and is left out")
    seen = player.play(_STEPS, _SECONDS)
    player.tell_bounds()
    if seen is not None:
        _check_episodes(maker, player, findings)
        _check_determinism(maker, seen, findings, doing)
    doing("close", True)
    close_told(environment)
    return {"findings": findings.list, "speed": player.steps / player.busy if player.busy > 0 else 0}


def _check_episodes(maker, player, findings):
    limit = getattr(maker.spec() or getattr(player.environment, "spec", None), "max_episode_steps", None)
    if player.episodes == 0 and not limit:
        findings.note(f"no episode ended in {player.steps} random steps, and it has no time limit: evaluations cut it at "
                      "evaluation.steps_max; register it with max_episode_steps, or truncate in step")  # fmt: skip


def _check_determinism(maker, seen, findings, doing):
    doing("when a second one was made", False)
    again = maker.make()
    repeated = Player(again, findings, doing).play(min(len(seen) - 1, _REPEATED), _SECONDS)
    close_told(again)
    if repeated is None:
        return
    for step, (one, other) in enumerate(zip(seen, repeated)):
        if one != other:
            when = "reset" if step == 0 else f"step {step - 1}"
            findings.note(f"two of them with one seed and the same actions differ at {when}: draw from self.np_random, after "
                          "super().reset(seed=seed), and from nothing else")  # fmt: skip
            return
