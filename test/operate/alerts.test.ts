/** The alerts of `docs/operate/alerts.yml` against the metrics of the processes, their runbooks, and their own tests. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseYaml } from '@redocly/openapi-core'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { repositoryCommands } from '../../cli/repository/table.ts'
import { COMMANDS } from '../../cli/table.ts'
import { exportedMetrics, metricsText } from '../description/metrics.ts'
import { skipBecause } from '../e2e/support/guide.ts'

const FOLDER = 'docs/operate'
const read = (name: string): string => readFileSync(join(FOLDER, name), 'utf8')

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string; readonly runbook: string }
}

const rules = (parseYaml(read('alerts.yml')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  (group) => group.rules,
)
const names = rules.map(({ alert }) => alert)
/** Alert to the text below its heading. */
const runbooks = new Map(
  read('runbooks.md')
    .split('\n## ')
    .slice(1)
    .map((section) => [section.split('\n')[0] as string, section]),
)

const promtool = (...args: string[]) =>
  spawnSync('promtool', args, { cwd: FOLDER, encoding: 'utf8', timeout: 60_000 })

describe('the alerts', function () {
  this.timeout(120_000)

  it('when the metrics are read from the registries, the document is current (if not: npm run describe)', () => {
    expect(read('metrics.md')).to.equal(metricsText())
  })

  it('when an expression names a metric, a process exports it', () => {
    const exported = new Set(
      [...exportedMetrics().values()].flat().flatMap(({ name, type }) => {
        if (type === 'histogram') return [`${name}_bucket`, `${name}_count`, `${name}_sum`]
        return [name]
      }),
    )
    const prefixes = new Set([...exportedMetrics().keys(), 'log'])
    const named = rules.flatMap(({ expr }) => expr.match(/\b[a-z]+(?:_[a-z]+)+\b/g) ?? [])
    const unknown = named.filter((name) => prefixes.has(name.split('_')[0] as string) && !exported.has(name))
    expect(unknown).to.deep.equal([])
    expect(named.filter((name) => exported.has(name)).length).to.be.at.least(rules.length - 2)
  })

  it('when an alert fires, it names its runbook, which has steps; no runbook is without an alert', () => {
    for (const rule of rules) {
      expect(rule.annotations.runbook).to.equal(`docs/operate/runbooks.md#${rule.alert.toLowerCase()}`)
      expect(['page', 'ticket']).to.include(rule.labels.severity)
      expect(runbooks.get(rule.alert), rule.alert).to.include('\n1. ')
    }
    expect([...runbooks.keys()]).to.deep.equal(names)
  })

  it('when a runbook names a command, the command exists, and when it names a runbook, that one exists', async () => {
    const commands = [...COMMANDS, ...(await repositoryCommands())].map(({ name }) => name)
    for (const [alert, text] of runbooks) {
      for (const [, words = ''] of text.matchAll(/`((?:ops|batch|status)\b[a-z -]*?)(?: --| <|`)/g))
        expect(commands, `${alert}: ${words}`).to.include(words.trim())
      for (const [, link = ''] of text.matchAll(/\]\(#(\w+)\)/g))
        expect(
          names.map((name) => name.toLowerCase()),
          `${alert}: ${link}`,
        ).to.include(link)
    }
  })

  it('when Prometheus reads the rules, each alert fires under its series and is silent under others', function () {
    if (promtool('--version').error !== undefined) skipBecause(this, 'promtool is not installed')
    const tests = read('alerts.test.yml')
    for (const name of names)
      expect(tests).to.include(`name: ${name} fires`).and.include(`name: ${name} is silent`)
    const checked = promtool('check', 'rules', 'alerts.yml')
    expect(checked.status, checked.stderr).to.equal(0)
    const tested = promtool('test', 'rules', 'alerts.test.yml')
    expect(tested.status, `${tested.stdout}${tested.stderr}`).to.equal(0)
  })
})
