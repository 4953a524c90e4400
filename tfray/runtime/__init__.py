"""One device executing one partition: plans, generated code, memory, rendezvous."""
