/** Runs the benchmark of a figure, stores its line in `results/`, and fills the table of the README from all stored lines. */
// npm run bench:record -- [--figure mix-200]
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { createInterface } from 'node:readline'
import { argumentsOf, oneOf } from '../service/command-line.ts'
import { fileOf, type Recorded, withTable } from './figure-table.ts'
import { FIGURES, type Figure, type Line } from './targets.ts'

const README = new URL('README.md', import.meta.url)

/** Runs the command and returns its last line of JSON. */
async function lineOf({ command: [script = '', ...flags] }: Figure): Promise<Line> {
  const child = spawn('npm', ['run', '-s', script, '--', ...flags], { stdio: ['ignore', 'pipe', 'inherit'] })
  let last: Line
  createInterface(child.stdout).on('line', (line) => {
    if (line.startsWith('{"')) last = JSON.parse(line)
    else console.log(line)
  })
  const [code] = await once(child, 'close')
  if (code !== 0 || last === undefined) throw new Error(`${script} ended with ${code} and no line of figures`)
  return last
}

async function record(figure: Figure): Promise<void> {
  const line = await lineOf(figure)
  const recorded: Recorded = {
    date: new Date().toISOString().slice(0, 10),
    processors: availableParallelism(),
    line,
  }
  writeFileSync(fileOf(figure), `${JSON.stringify(recorded, null, 2)}\n`)
}

const { figure } = argumentsOf({
  command: 'npm run bench:record --',
  flags: {
    figure: oneOf(
      FIGURES.map(({ name }) => name),
      'measure this figure; without it, only the table is filled',
    ),
  },
})

const chosen = FIGURES.find(({ name }) => name === figure)
if (chosen !== undefined) await record(chosen)
writeFileSync(README, withTable(readFileSync(README, 'utf8')))
