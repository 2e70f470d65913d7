/** Samples of the text format in which processes export their metrics. */

export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface Samples {
  /** Whether the process exports the metric, also without any sample. */
  has(name: string): boolean
  /** Every sample of the metric; empty if the process does not export it. */
  all(name: string): readonly Sample[]
  /** The value of a metric without labels; null without one. */
  value(name: string): number | null
}

const TYPE = /^# TYPE (\S+) /gm
const LINE = /^([a-z]\w*)(?:\{(.*)\})? (\S+)$/
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g
const ESCAPED: Readonly<Record<string, string>> = { '\\n': '\n', '\\"': '"', '\\\\': '\\' }

const labelsOf = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...text.matchAll(LABEL)].map(([, name, value = '']) => [
      name,
      value.replaceAll(/\\["n\\]/g, (pair) => ESCAPED[pair] ?? pair),
    ]),
  )

/** Values that are no finite numbers are left out. */
export function parseSamples(text: string): Samples {
  const byName = new Map<string, Sample[]>()
  for (const line of text.split('\n')) {
    const [, name, labels = '', number] = LINE.exec(line) ?? []
    const value = Number(number)
    if (name === undefined || !Number.isFinite(value)) continue
    const samples = byName.get(name) ?? []
    samples.push({ labels: labelsOf(labels), value })
    byName.set(name, samples)
  }
  const exported = new Set([...text.matchAll(TYPE)].map(([, name]) => name))
  const all = (name: string): readonly Sample[] => byName.get(name) ?? []
  return { has: (name) => exported.has(name), all, value: (name) => all(name)[0]?.value ?? null }
}
