"""Builders of the models of the literature, with random weights.

Linear models start from N(0, scale²); softmax models from N(0, 1/fan-in), where what enters the residual stream is divided
by √(2 layers), so that its size does not grow with the depth. Arrays are imported when a model is built.
"""
