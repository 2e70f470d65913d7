/** What is left of a run of the whole exchange that fails when everything is taken away that it fails without. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Command, type Round, roundsOf } from '../e2e/support/commands.ts'
import { shrink } from './shrink.ts'

/** One thing of a run that can be left out. */
type Piece =
  | { readonly round: number; readonly kind: 'prices' }
  | { readonly round: number; readonly kind: 'fault' }
  | { readonly round: number; readonly kind: 'command'; readonly by: number; readonly command: Command }

const piecesOf = (rounds: readonly Round[]): Piece[] =>
  rounds.flatMap(({ commands, fault }, round): Piece[] => [
    { round, kind: 'prices' },
    ...commands.flatMap((list, by) =>
      list.map((command): Piece => ({ round, kind: 'command', by, command })),
    ),
    ...(fault === null ? [] : [{ round, kind: 'fault' } as const]),
  ])

/** Rounds of nothing but these pieces. Without its prices a round has those of the one before. */
function roundsWith(all: readonly Round[], pieces: readonly Piece[]): Round[] {
  const rounds: Round[] = []
  for (const [at, { prices, commands, fault }] of all.entries()) {
    const own = pieces.filter(({ round }) => round === at)
    if (own.length === 0) continue
    const has = (kind: Piece['kind']): boolean => own.some((piece) => piece.kind === kind)
    rounds.push({
      prices: has('prices') ? prices : (rounds.at(-1)?.prices ?? []),
      commands: commands.map((_, trader) =>
        own.flatMap((piece) => (piece.kind === 'command' && piece.by === trader ? [piece.command] : [])),
      ),
      fault: has('fault') ? fault : null,
    })
  }
  return rounds
}

/** What a run that failed complained about, whichever order or number it was; one that broke off says just that. */
function complaintsIn(output: string): string[] {
  const lists = output.matchAll(/AssertionError: MODEL_SEED=.*\n([\s\S]*?)\nlast round: /g)
  const lines = [...lists].flatMap(([, list = '']) => list.split('\n'))
  const shapes = lines.map((line) => line.replaceAll(/0x[0-9a-f]+|\d+/g, '#'))
  return shapes.length > 0 ? shapes : ['broke off']
}

export async function shrinkRun(seed: number, count: number, minutes: number): Promise<void> {
  const all = roundsOf(seed, count)
  const script = join(mkdtempSync(join(tmpdir(), 'clearbatch-model-')), 'rounds.json')
  const end = Date.now() + minutes * 60_000
  const write = (pieces: readonly Piece[]): void =>
    writeFileSync(script, JSON.stringify(roundsWith(all, pieces)))
  /** Of the whole run, which a shorter one must share. */
  const wanted = new Set<string>()
  const fails = async (pieces: readonly Piece[]): Promise<boolean> => {
    write(pieces)
    // It is played twice, with one and with two of each process: runs differ in their timing.
    const args = ['test/e2e/model.test.ts', '--grep', 'is what the model says']
    const env = { ...process.env, MODEL_SCRIPT: script }
    const { status, stdout } = spawnSync('node_modules/.bin/mocha', args, { env, encoding: 'utf8' })
    const found = status === 0 ? [] : complaintsIn(stdout)
    if (wanted.size === 0) for (const complaint of found) wanted.add(complaint)
    const isSame = found.some((complaint) => wanted.has(complaint))
    const otherwise = found.length > 0 ? 'fails in another way' : 'passes'
    console.log(`${pieces.length}: ${isSame ? 'fails' : otherwise}`)
    return isSame
  }
  const pieces = piecesOf(all)
  console.log(`seed ${seed}, ${count} rounds: ${pieces.length} things to leave out`)
  if (!(await fails(pieces))) {
    console.log('does not fail')
    return
  }
  const left = await shrink(pieces, fails, () => Date.now() > end)
  write(left)
  console.log(
    roundsWith(all, left)
      .map((round) => JSON.stringify(round))
      .join('\n'),
  )
  console.log(`again: MODEL_SCRIPT=${script} npx mocha test/e2e/model.test.ts`)
}
