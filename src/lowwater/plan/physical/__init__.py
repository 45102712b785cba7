"""The physical plan: operators, how nodes become them, and how they are spread over machines."""
