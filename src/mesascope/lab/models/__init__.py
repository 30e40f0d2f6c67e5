"""The page that trains any model of the registry on any data, and names the algorithm that it has learned."""
