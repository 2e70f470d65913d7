/** Runs the engine's shell under faults, one run per seed, and checks every law (`keeper/engine/README.md`). */
// npm run simulate:exchange -- --seed 1 --seeds 100 --events 10000
// npm run simulate:exchange -- --faults
import { resolve } from 'node:path'
import { argumentsOf, oneOf, toggle, wholeNumber, withDefault } from '../../service/command-line.ts'
import { loadEngine, loadScenario, SCENARIOS, type ScenarioName } from './engine-code.ts'
import { FAULTS, findFault } from './faults.ts'
import { runExchange } from './run.ts'

const { seed, seeds, events, faults, search, scenario } = argumentsOf({
  command: 'npm run simulate:exchange --',
  flags: {
    seed: withDefault(wholeNumber('the first seed'), 1),
    seeds: withDefault(wholeNumber('number of runs, each with the next seed', { least: 1 }), 1),
    events: withDefault(wholeNumber('events of a run until its faults end', { least: 1000 }), 10_000),
    scenario: oneOf(SCENARIOS, 'what the members decide; both by default'),
    faults: toggle('inject each fault of the list into the engine; its seed must find it'),
    search: wholeNumber('with --faults: try the seeds up to this one for each fault', { least: 1 }),
  },
})

async function checkFaults(): Promise<number> {
  let missed = 0
  for (const fault of FAULTS) {
    const { violation, seed: found } = await findFault(fault, search ?? null)
    if (violation === null) missed += 1
    console.log(
      `${violation === null ? 'MISSED' : 'found'} ${fault.name} (seed ${found}): ${violation ?? '-'}`,
    )
  }
  console.log(`${FAULTS.length} faults, ${missed} missed`)
  return missed
}

async function checkSeeds(name: ScenarioName): Promise<number> {
  const newScenario = await loadScenario(resolve('.'), name)
  const engine = await loadEngine(resolve('.'))
  const started = performance.now()
  const total = { events: 0, answers: 0, groups: 0, takeovers: 0, violations: 0 }
  for (let own = seed; own < seed + seeds; own++) {
    const outcome = await runExchange(engine, newScenario(), { seed: own, events })
    total.events += outcome.events
    total.answers += outcome.answers
    total.groups += outcome.groups
    total.takeovers += outcome.takeovers
    total.violations += outcome.violations.length
    for (const violation of outcome.violations) {
      console.error(
        `${violation}\n  npm run simulate:exchange -- --scenario ${name} --seed ${own} --events ${events}`,
      )
    }
  }
  const perMinute = Math.round((total.events * 60_000) / (performance.now() - started))
  console.log(
    JSON.stringify({
      simulate: 'exchange',
      scenario: name,
      seed,
      seeds,
      ...total,
      events_per_minute: perMinute,
    }),
  )
  console.log(`${seeds} runs, ${total.violations} violations`)
  return total.violations
}

const names = scenario === undefined ? SCENARIOS : [scenario]

async function checkScenarios(): Promise<number> {
  let violations = 0
  for (const name of names) violations += await checkSeeds(name)
  return violations
}

process.exitCode = (await (faults ? checkFaults() : checkScenarios())) > 0 ? 1 : 0
