"""What flows: elements, marks, time and windows. Nothing here knows operators or engines."""
