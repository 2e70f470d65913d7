/** The dashboards of `docs/operate/dashboards/` against the metrics of the processes, and against Prometheus. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { exportedMetrics } from '../description/metrics.ts'
import { skipBecause } from '../e2e/support/guide.ts'

const FOLDER = 'docs/operate/dashboards'

interface Panel {
  readonly id: number
  readonly title: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly datasource: { readonly uid: string }
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[]
}

interface Dashboard {
  readonly uid: string
  readonly title: string
  readonly panels: readonly Panel[]
}

const files = readdirSync(FOLDER).toSorted()
const dashboards = files.map((name) => JSON.parse(readFileSync(join(FOLDER, name), 'utf8')) as Dashboard)
const panels = dashboards.flatMap(({ panels: own }) => own)
const targets = panels.flatMap(({ targets: own, title }) => own.map((target) => ({ at: title, ...target })))

/** By the name of a series: the labels that it has. */
function series(): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>()
  for (const { name, type, labels } of [...exportedMetrics().values()].flat()) {
    const isHistogram = type === 'histogram'
    const names = isHistogram ? [`${name}_bucket`, `${name}_count`, `${name}_sum`] : [name]
    for (const each of names) found.set(each, each.endsWith('_bucket') ? [...labels, 'le'] : labels)
  }
  return found
}

/** Labels that Prometheus adds to each series. */
const SCRAPED = ['job', 'instance']
const METRIC = /\b(?:api|backstop|engine|indexer|keeper|signer|certificate|log|trace)_[a-z_]+\b/g
const LABELS = /\b(?:by|on) ?\(([a-z_, ]*)\)|\{([a-z_]+)[=!]/g

const metricsIn = (expr: string): readonly string[] => expr.match(METRIC) ?? []
const labelsIn = (expr: string): readonly string[] =>
  [...expr.matchAll(LABELS)]
    .flatMap(([, list, one]) => (list ?? one ?? '').split(','))
    .flatMap((name) => name.trim() || [])

describe('the dashboards', () => {
  it('when an operator lists them, there is one for each part of the exchange, with an id of its own', () => {
    expect(files).to.deep.equal(['api.json', 'engine.json', 'exchange.json', 'settlement.json'])
    expect(dashboards.map(({ uid }) => uid)).to.deep.equal(
      files.map((name) => `clearbatch-${name.replace('.json', '')}`),
    )
  })

  it('when an expression names metrics, processes export them', () => {
    const known = series()
    for (const { at, expr } of targets) {
      const named = metricsIn(expr)
      expect(named, `${at}: ${expr}`).not.to.deep.equal([])
      for (const name of named) expect(known.has(name), `${at}: ${name}`).to.equal(true)
    }
  })

  it('when an expression or a legend names a label, a metric of the expression has it', () => {
    const known = series()
    for (const { at, expr, legendFormat } of targets) {
      const labels = [...metricsIn(expr).flatMap((name) => known.get(name) ?? []), ...SCRAPED]
      const legend = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, name]) => name)
      for (const label of [...labelsIn(expr), ...legend])
        expect(labels, `${at}: ${label} in ${expr}`).to.include(label)
    }
  })

  it('when a metric is exported by a process of the exchange, a dashboard shows it', () => {
    const shown = new Set(targets.flatMap(({ expr }) => metricsIn(expr)))
    const isShown = (name: string): boolean =>
      ['', '_bucket', '_count', '_sum'].some((ending) => shown.has(`${name}${ending}`))
    const exported = [...exportedMetrics().values()].flat().map(({ name }) => name)
    const hidden = exported.filter((name) => !/^(process|nodejs)_/.test(name) && !isShown(name))
    expect(hidden).to.deep.equal([])
  })

  it('when panels are placed, none covers another, and each reads the chosen data source', () => {
    for (const { title, panels: own } of dashboards) {
      expect(new Set(own.map(({ id }) => id)).size).to.equal(own.length)
      const cells = own.flatMap(({ gridPos: { x, y, w, h } }) =>
        Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)}:${y + Math.floor(cell / w)}`),
      )
      expect(new Set(cells).size, title).to.equal(cells.length)
    }
    for (const { datasource } of panels) expect(datasource.uid).to.equal('$' + '{datasource}')
  })

  it('when Prometheus reads the expressions, it accepts each of them', function () {
    if (spawnSync('promtool', ['--version']).error !== undefined)
      return skipBecause(this, 'promtool is not installed')
    const folder = mkdtempSync(join(tmpdir(), 'clearbatch-dashboards-'))
    const rules = targets.map(({ expr }, at) => ({
      record: `expression:${at}`,
      expr: expr.replaceAll('$__rate_interval', '1m'),
    }))
    const file = join(folder, 'rules.yml')
    // JSON is YAML.
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboards', rules }] }))
    const { status, stderr } = spawnSync('promtool', ['check', 'rules', file], { encoding: 'utf8' })
    rmSync(folder, { recursive: true })
    expect(status, stderr).to.equal(0)
  })
})
