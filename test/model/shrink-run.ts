/** Shrinks a failing run of the complete exchange: removes commands, faults and prices as long as the run still fails. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Command, type Round, roundsOf } from '../e2e/support/commands.ts'
import type { Crash, Fault } from '../e2e/support/faults.ts'
import { shrink } from './shrink.ts'

/** A part of a run that can be removed. */
type Piece =
  | { readonly round: number; readonly kind: 'prices' }
  | { readonly round: number; readonly kind: 'crash'; readonly crash: Crash }
  | { readonly round: number; readonly kind: 'fault'; readonly fault: Fault }
  | { readonly round: number; readonly kind: 'command'; readonly by: number; readonly command: Command }

const piecesOf = (rounds: readonly Round[]): Piece[] =>
  rounds.flatMap(({ crashes, commands, faults }, round): Piece[] => [
    ...crashes.map((crash): Piece => ({ round, kind: 'crash', crash })),
    { round, kind: 'prices' },
    ...commands.flatMap((list, by) =>
      list.map((command): Piece => ({ round, kind: 'command', by, command })),
    ),
    ...faults.map((fault): Piece => ({ round, kind: 'fault', fault })),
  ])

/** The rounds with only these pieces. A round without prices keeps the prices of the round before it. */
function roundsWith(all: readonly Round[], pieces: readonly Piece[]): Round[] {
  const rounds: Round[] = []
  for (const [at, { prices, commands }] of all.entries()) {
    const own = pieces.filter(({ round }) => round === at)
    if (own.length === 0) continue
    rounds.push({
      crashes: own.flatMap((piece) => (piece.kind === 'crash' ? [piece.crash] : [])),
      prices: own.some(({ kind }) => kind === 'prices') ? prices : (rounds.at(-1)?.prices ?? []),
      commands: commands.map((_, trader) =>
        own.flatMap((piece) => (piece.kind === 'command' && piece.by === trader ? [piece.command] : [])),
      ),
      faults: own.flatMap((piece) => (piece.kind === 'fault' ? [piece.fault] : [])),
    })
  }
  return rounds
}

/** The differences that a failed run printed, without ids and numbers, or `aborted` if it printed none. */
function differencesIn(output: string): string[] {
  const lists = output.matchAll(/AssertionError: MODEL_SEED=.*\n([\s\S]*?)\nlast round: /g)
  const lines = [...lists].flatMap(([, list = '']) => list.split('\n'))
  const shapes = lines.map((line) => line.replaceAll(/0x[0-9a-f]+|\d+/g, '#'))
  return shapes.length > 0 ? shapes : ['aborted']
}

export async function shrinkRun(seed: number, count: number, minutes: number): Promise<void> {
  const all = roundsOf(seed, count)
  const script = join(mkdtempSync(join(tmpdir(), 'clearbatch-model-')), 'rounds.json')
  const end = Date.now() + minutes * 60_000
  const write = (pieces: readonly Piece[]): void =>
    writeFileSync(script, JSON.stringify(roundsWith(all, pieces)))
  /** The differences of the complete run. A shorter run must have a difference of this list. */
  const wanted = new Set<string>()
  const fails = async (pieces: readonly Piece[]): Promise<boolean> => {
    write(pieces)
    // The test plays the rounds twice, with one and with two of each process, because runs differ in timing.
    const args = ['test/e2e/model.test.ts', '--grep', 'it equals the model after each']
    const env = { ...process.env, MODEL_SCRIPT: script }
    const { status, stdout } = spawnSync('node_modules/.bin/mocha', args, { env, encoding: 'utf8' })
    const found = status === 0 ? [] : differencesIn(stdout)
    if (wanted.size === 0) for (const difference of found) wanted.add(difference)
    const isSame = found.some((difference) => wanted.has(difference))
    const otherwise = found.length > 0 ? 'fails with other differences' : 'passes'
    console.log(`${pieces.length} pieces: ${isSame ? 'fails' : otherwise}`)
    return isSame
  }
  const pieces = piecesOf(all)
  console.log(`seed ${seed}, ${count} rounds: ${pieces.length} pieces`)
  if (!(await fails(pieces))) {
    console.log('the complete run passes: there is nothing to shrink')
    return
  }
  const left = await shrink(pieces, fails, () => Date.now() > end)
  write(left)
  console.log(
    roundsWith(all, left)
      .map((round) => JSON.stringify(round))
      .join('\n'),
  )
  console.log(`to repeat it: MODEL_SCRIPT=${script} npx mocha test/e2e/model.test.ts`)
}
