# Made by tests/examples/lm_figures.py from the runs that are kept.
import matplotlib.pyplot as plt
import numpy as np

curve = [
    (122880, 2.8464),
    (245760, 2.4451),
    (368640, 2.2807),
    (491520, 2.1551),
    (614400, 2.0549),
    (737280, 1.966),
    (860160, 1.9197),
    (983040, 1.8731),
    (1105920, 1.8317),
    (1228800, 1.794),
    (1351680, 1.7612),
    (1474560, 1.7417),
    (1597440, 1.7134),
    (1720320, 1.6889),
    (1843200, 1.6774),
    (1966080, 1.6626),
]
test = 1.6619
baselines = {
    "Kneser-Ney, 8 bytes": 1.6715,
    "xz, after the training text": 1.4581,
    "xz": 1.7136,
}

figure, axes = plt.subplots(figsize=(6, 3))
axes.plot(*np.array(curve).T, label="this model, validation text")
axes.plot(curve[-1][0], test, "o", color="C0", label="and test text")
for i, (name, value) in enumerate(baselines.items()):
    axes.axhline(value, color=f"C{i + 1}", linestyle="--", label=name)
axes.set(xlabel="tokens seen", ylabel="bits a byte")
axes.legend()
plt.show()
