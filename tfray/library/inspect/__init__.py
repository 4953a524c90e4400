"""Looking at graphs and steps: debugger, profiler, timelines, summaries."""
