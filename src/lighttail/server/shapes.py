"""What requests and answers look like: types for the code, and the OpenAPI document for everybody else.

The annotations are no text, as they are elsewhere, so that a shape knows which of its fields it requires."""

from typing import Annotated, Any, Literal, NotRequired, Required

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

from lighttail.live.requests import LONGEST_TEXT, MOST_AT_ONCE
from lighttail.online.state import LONGEST_ABOUT

Label = Annotated[str | int, Field(description="The name of an arm.")]
Id = Annotated[str, Field(description="The id of a trial.", examples=["1"])]
ShortText = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")]
IN_WORDS = "A shipped policy in words; its number is kappa, in units of the reward."
Policy = Annotated[str, Field(description=IN_WORDS, examples=["ucb:anytime:0.1", "ts:0.1"])]


@with_config(ConfigDict(extra="forbid"))
class Body(TypedDict):
    """A part of a body, with these fields and no other."""


class LimitsBody(Body):
    """Two numbers, the lower one first."""

    low: float
    high: float


class SigmaBody(Body):
    """The sigma of noise without limits."""

    sigma: Annotated[float, Field(gt=0)]


class HoldoutBody(Body):
    """The arm of the units that the policy never sees, and their share."""

    arm: Label
    share: Annotated[float, Field(gt=0, lt=1)]


class RiskBody(Body):
    """The risk budget: a loss, its chance by the end at most, and what an alarm does."""

    loss: Annotated[float, Field(gt=0)]
    chance: Annotated[float, Field(gt=0, lt=1)]
    then: Literal["warn", "pause"]


class RailsBody(Body, total=False):
    """The guard rails of an experiment, and what forecasts take for granted (`rewards`, `means`)."""

    shares: dict[str, float] | None
    holdout: HoldoutBody | None
    sticky: bool | None
    window: Annotated[float | None, Field(description="Seconds.")]
    default: float | bool | None
    late: Literal["ignore", "amend"] | None
    risk: RiskBody | None
    fallback: Label | None
    rewards: LimitsBody | SigmaBody | None
    means: LimitsBody | None


class AlarmAnswer(TypedDict):
    """The last alarm: whether it is on, the risk budget, and the chance that a forecast found, which began
    after the event `after`."""

    seq: int
    time: float
    state: Literal["on", "over"]
    loss: float
    limit: float
    then: Literal["warn", "pause"]
    chance: float
    low: float
    high: float
    after: int


class ExperimentBody(Body, total=False):
    """An experiment to begin. A policy for arms needs `arms`; a linear policy needs `dim`."""

    name: Required[Name]
    policy: Required[Policy]
    arms: Annotated[list[str | int] | None, Field(examples=[["control", "blue"]])]
    dim: Annotated[int | None, Field(ge=1)]
    horizon: Annotated[int | None, Field(ge=1)]
    seed: Annotated[int | None, Field(ge=0)]
    settings: Annotated[RailsBody | None, Field(description="The guard rails.")]


class AskBody(Body, total=False):
    """A wish for trials. The same `key` again gives the same answer."""

    key: ShortText | None
    unit: ShortText | None
    count: Annotated[int | None, Field(ge=1, le=MOST_AT_ONCE)]
    actions: Annotated[
        list[list[float]] | None, Field(description="One row per action of a linear experiment.")
    ]
    labels: Annotated[list[str | int] | None, Field(description="The names of the actions, in their order.")]
    about: Annotated[
        dict[str, str | int | float | bool | None] | None,
        Field(description=f"What to keep with each trial: at most {LONGEST_ABOUT} bytes."),
    ]


class RewardBody(Body):
    """The reward of a trial; `true` counts as 1 and `false` as 0."""

    id: Annotated[str | int, Field(description="The id of a trial, as text or as a number.")]
    reward: float | bool


class TellBody(Body):
    """Rewards, of which all are counted or none."""

    rewards: Annotated[list[RewardBody], Field(min_length=1, max_length=MOST_AT_ONCE)]


class NoBody(Body):
    """Nothing: an object without fields."""


class ArmsBody(Body, total=False):
    """An arm that joins (`add`) or leaves for good (`retire`): one of the two."""

    add: Label | None
    retire: Label | None


class SettingsBody(Body):
    """The settings from now on, in place of all that there were."""

    settings: Annotated[RailsBody, Field(description="The guard rails.")]


class TrialAnswer(TypedDict):
    """A trial. `by`: who chose the arm (policy, floor, sticky, holdout or fallback)."""

    id: Id
    arm: Label
    by: str
    action: NotRequired[list[float]]


class TrialsAnswer(TypedDict):
    """The trials that were asked for, which are on disk."""

    trials: list[TrialAnswer]


class ToldAnswer(TypedDict):
    """What became of rewards: counted, known before, or (if there are any) after the window and not
    counted."""

    counted: int
    repeated: int
    late: NotRequired[int]


class ChangeAnswer(TypedDict):
    """Whether anything changed: a repeated request changes nothing."""

    changed: bool


@with_config(ConfigDict(extra="allow"))
class SummaryAnswer(TypedDict):
    """An experiment in numbers. `tries`, `heard` and `means` are by arm."""

    name: str
    policy: str
    arms: list[str | int] | None
    horizon: int | None
    open: int
    paused: bool
    stopped: bool
    settings: dict[str, Any]
    alarm: AlarmAnswer | None


class ChanceAnswer(TypedDict):
    """A number and the ends of its interval, which holds with the chance `level`."""

    value: float | None
    low: float | None
    high: float | None
    level: NotRequired[float]
    means: NotRequired[dict[str, float]]


class LawAnswer(TypedDict):
    """A law in bins: the shares of the simulated ends, and the edges of the bins."""

    edges: list[float]
    shares: list[float]


class ForecastAnswer(TypedDict):
    """What an experiment may lose by its end. `pulls`: the pulls so far, as the forecast knows them;
    `chance`: that it loses `loss` or more, averaged over what the rewards say; `worst`: the same on the worst
    problem that was found within the confidence limits, with its `means`; `distribution`: of the loss at the
    end."""

    loss: float
    horizon: int
    pulls: int
    chance: ChanceAnswer
    worst: ChanceAnswer
    mean_loss: ChanceAnswer
    so_far: ChanceAnswer
    distribution: LawAnswer


class ListAnswer(TypedDict):
    """All experiments, in the order of their creation."""

    experiments: list[str]


class HealthAnswer(TypedDict):
    """The server is there."""

    status: str


class Problem(TypedDict):
    """Why a request was refused."""

    field: str | None
    value: str | None
    allowed: str | None
    message: str


class ProblemAnswer(TypedDict):
    """A refusal: the field, its value, what is allowed, and one sentence."""

    error: Problem
