"""What driver and workers share: messages, programs, buckets, types, errors."""
