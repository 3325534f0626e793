# Made by tests/examples/lm_figures.py from the runs that are kept.
import matplotlib.pyplot as plt
import numpy as np

smaller = [
    (133111480320.0, 2.7099),
    (677401067520.0, 2.3905),
    (677401067520.0, 2.3213),
    (677401067520.0, 2.3375),
    (2957424721920.0, 2.0009),
]
operations, predicted = 11803274772480.0, 1.7666
measured = 1.6619

figure, axes = plt.subplots(figsize=(6, 3))
axes.plot(*np.array(smaller).T, "o", label="three smaller sizes")
slope, start = np.polyfit(*np.log(smaller).T, 1)
x = np.geomspace(smaller[0][0], operations, 50)
axes.plot(x, np.exp(start) * x**slope, "--", color="C0")
axes.plot(operations, predicted, "x", label=f"predicted: {predicted:.3f}")
axes.plot(operations, measured, "s", label=f"measured: {measured:.3f}")
axes.set(xscale="log", xlabel="operations", ylabel="bits a byte of test text")
axes.legend()
plt.show()
