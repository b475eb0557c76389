"""An agent of the Agents SDK of OpenAI, by its settings in the environment. Prints its answer as JSON."""

import json

from agents import Agent, Runner, set_tracing_disabled

set_tracing_disabled(True)
result = Runner.run_sync(Agent(name="counter", instructions="Count."), "How many clips?", max_turns=1)
print(json.dumps(result.final_output))
