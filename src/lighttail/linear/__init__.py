"""Linear bandits: the problem, its policies and bonuses, and sets of actions."""

from lighttail.linear.actions import Actions, BallActions, ContextActions, FixedActions, SphereActions
from lighttail.linear.bonuses import LinearBonus, LinearLightTailed, LinearStandard, Oful
from lighttail.linear.convex import BallSet, BoxSet, ConvexSet
from lighttail.linear.policies import LinearPolicy, LinearThompson, LinearUCB
from lighttail.linear.problem import LinearBandit

__all__ = [
    "Actions",
    "BallActions",
    "BallSet",
    "BoxSet",
    "ContextActions",
    "ConvexSet",
    "FixedActions",
    "LinearBandit",
    "LinearBonus",
    "LinearLightTailed",
    "LinearPolicy",
    "LinearStandard",
    "LinearThompson",
    "LinearUCB",
    "Oful",
    "SphereActions",
]
