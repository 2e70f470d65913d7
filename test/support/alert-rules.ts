/** Evaluates a rule of `docs/operate/alerts.yml` for a value that a process has exported, with promtool. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const RULES = resolve('docs/operate/alerts.yml')

export const hasPromtool = (): boolean => spawnSync('promtool', ['--version']).error === undefined

/** The value of a series in the text of `/metrics`; null if it is absent. */
export function seriesValue(metrics: string, series: string): number | null {
  const line = metrics.split('\n').find((each) => each.startsWith(`${series} `))
  return line === undefined ? null : Number(line.slice(series.length + 1))
}

/** Whether the alert fires after ten minutes in which the series has the value. The time of the test begins at 0. */
export function isFiring(alert: string, series: string, value: number): boolean {
  const dir = mkdtempSync(join(tmpdir(), 'clearbatch-alert-'))
  const file = join(dir, 'test.yml')
  writeFileSync(
    file,
    `rule_files: ['${RULES}']
evaluation_interval: 15s
tests:
  - interval: 15s
    input_series:
      - series: '${series}'
        values: '${value}x80'
    promql_expr_test:
      - eval_time: 10m
        expr: count(ALERTS{alertname="${alert}", alertstate="firing"})
        exp_samples:
          - labels: '{}'
            value: 1
`,
  )
  const { status, error } = spawnSync('promtool', ['test', 'rules', file], { timeout: 60_000 })
  rmSync(dir, { recursive: true })
  if (error !== undefined) throw error
  return status === 0
}
