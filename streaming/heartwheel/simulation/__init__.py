"""Histories from a seed: members, brokers, clocks, and the real job dying anywhere, without Spark and Kafka.

>>> from heartwheel.simulation import simulate
>>> simulate(4711).problems
[]
"""

from heartwheel.simulation.plan import Plan, draw_plan
from heartwheel.simulation.problem import Problem
from heartwheel.simulation.run import History, simulate, simulate_plan
from heartwheel.simulation.survey import Failure, Survey, survey

__all__ = ["Failure", "History", "Plan", "Problem", "Survey", "draw_plan", "simulate", "simulate_plan", "survey"]
