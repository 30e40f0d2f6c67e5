"""The story: six steps from the data to the reason why a trained layer answers one fifth of the truth."""
