"""Update streams (UpStream): each row replaces the one before it for its key."""
