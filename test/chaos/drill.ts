/**
 * Drills of the runbooks: injects the fault of an alert into a complete exchange, waits until Prometheus fires the alert, follows the runbook, and
 * waits until it clears. Writes the evidence with `--write`.
 *
 *   npm run drill -- --alert ProcessDown [--write]
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { argumentsOf, oneOf, toggle } from '../../service/command-line.ts'
import { RollingStack } from '../e2e/support/rolling.ts'
import { DRILLS, type Drill } from './drills/drills.ts'
import { type Prometheus, ruleOf, SHORT_FOR, startPrometheus } from './drills/prometheus.ts'

const EVIDENCE = 'docs/operate/drills'
const LIMIT_MS = 150_000
const PACE_MS = 500

const { alert: chosen, write } = argumentsOf({
  command: 'npm run drill --',
  flags: {
    alert: oneOf(Object.keys(DRILLS), 'only the drill of this alert; by default all'),
    write: toggle(`write the evidence to ${EVIDENCE}`),
  },
})

/** Seconds until the alert is in the state, and its value then. */
async function until(
  prometheus: Prometheus,
  alert: string,
  isFiring: boolean,
): Promise<{ readonly seconds: number; readonly value: number | null }> {
  for (const since = performance.now(); ; await sleep(PACE_MS)) {
    const found = (await prometheus.firing()).find(({ name }) => name === alert)
    const ms = performance.now() - since
    if ((found !== undefined) === isFiring)
      return { seconds: Math.round(ms / 1000), value: found === undefined ? null : Number(found.value) }
    if (ms > LIMIT_MS)
      throw new Error(`${alert} ${isFiring ? 'does not fire' : 'does not clear'} in ${LIMIT_MS / 1000} s`)
  }
}

/** Runs from the end to the start. */
async function undo(steps: readonly (() => unknown)[]): Promise<void> {
  for (const step of steps.toReversed()) await step()
}

async function play(alert: string, drill: Drill): Promise<object> {
  const steps: (() => unknown)[] = []
  try {
    const exchange = await RollingStack.start(drill).catch(async (error: unknown) => {
      await drill.end?.()
      throw error
    })
    // Clients that the drill has started use the exchange, so they end first.
    steps.push(
      () => exchange.stop(),
      () => drill.end?.(),
    )
    const dir = mkdtempSync(join(tmpdir(), 'clearbatch-prometheus-'))
    steps.push(() => rmSync(dir, { recursive: true, force: true }))
    const prometheus = await startPrometheus(dir, exchange.listeners())
    steps.push(() => prometheus.stop())
    if (drill.change === undefined) await until(prometheus, alert, false)
    await drill.inject(exchange)
    const fired = await until(prometheus, alert, true)
    await drill.follow(exchange)
    const cleared = await until(prometheus, alert, false)
    const rule = ruleOf(alert)
    return {
      alert,
      expression: rule.expr,
      for: rule.for,
      for_in_drill: SHORT_FOR,
      fault: drill.fault,
      fired_after_seconds: fired.seconds,
      fired_with_value: fired.value,
      runbook_steps: drill.steps.join('; '),
      cleared_after_seconds: cleared.seconds,
      date: new Date().toISOString().slice(0, 10),
    }
  } finally {
    await undo(steps)
  }
}

for (const [alert, create] of Object.entries(DRILLS)) {
  if (chosen !== undefined && chosen !== alert) continue
  const evidence = `${JSON.stringify(await play(alert, create()), null, 2)}\n`
  console.log(evidence)
  if (!write) continue
  mkdirSync(EVIDENCE, { recursive: true })
  writeFileSync(join(EVIDENCE, `${alert}.json`), evidence)
}
