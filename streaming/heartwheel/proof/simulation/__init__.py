"""Histories from a seed: members, brokers, clocks and the real job, which may die anywhere; without Spark or Kafka.

>>> from heartwheel.proof.simulation import simulate
>>> simulate(4711).problems
[]
"""

from heartwheel.proof.simulation.checkers.problem import BrokenPromise
from heartwheel.proof.simulation.plan.draw import draw_plan
from heartwheel.proof.simulation.plan.parameters import Plan
from heartwheel.proof.simulation.run import SimulatedHistory, simulate, simulate_plan
from heartwheel.proof.simulation.survey import Failure, Survey, survey

__all__ = [
    "BrokenPromise",
    "Failure",
    "Plan",
    "SimulatedHistory",
    "Survey",
    "draw_plan",
    "simulate",
    "simulate_plan",
    "survey",
]
