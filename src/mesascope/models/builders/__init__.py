"""Builders of the models of the literature, with random weights.

Weights of linear models are N(0, scale²). Weights of softmax models are N(0, 1/fan-in); those that write to the residual
stream are divided by √(2 layers), so that its size does not grow with the depth. JAX is imported when a model is built.
"""
