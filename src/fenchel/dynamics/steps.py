"""The two steps of the paper's section 3.2, each a splitting into kicks and drifts."""

from fenchel.dynamics.drift import Drift
from fenchel.dynamics.kick import Kick
from fenchel.dynamics.particle import AbstractDynamics, Particle
from fenchel.shapes import Array, Key, Potential


class Leapfrog(AbstractDynamics):
    """Half a kick, a drift, half a kick.

    With the default kick and drift this is plain HMC; with S_v, S_x, g_v and g_x given or learnt
    it is the generalized leapfrog, in a momentum space of any dimension.
    """

    step_size: Array
    kick: Kick = Kick()
    drift: Drift = Drift()

    @property
    def exact(self) -> bool:
        return True

    def __call__(self, f: Potential, particle: Particle, key: Key) -> Particle:
        particle = self.kick(particle, self.step_size / 2)
        particle = self.drift(f, particle, self.step_size)
        return self.kick(particle, self.step_size / 2)


class Langevin(AbstractDynamics):
    """Half a kick and a drift: one step of Langevin dynamics with noise v.

    With v ~ N(0, I) the point moves by ε²/2 ∇f + ε v: Langevin dynamics of step ε².
    """

    step_size: Array
    kick: Kick = Kick()
    drift: Drift = Drift()

    @property
    def exact(self) -> bool:
        return True

    def __call__(self, f: Potential, particle: Particle, key: Key) -> Particle:
        return self.drift(f, self.kick(particle, self.step_size / 2), self.step_size)
