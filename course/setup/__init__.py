"""Setting up the course: its environment, and a hosted machine that has packages of its own."""
