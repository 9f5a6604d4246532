"""Networks are built one at a time in the whole process.

transformers, diffusers and accelerate swap methods of shared classes while they load a model: how weights are
tied, how parameters are registered. Two loads side by side take each other's swaps and put the wrong ones
back, which leaves this model, and every later one, without some of its weights.
"""

from threading import RLock

building = RLock()
