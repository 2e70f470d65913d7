/**
 * `npm run count:words`: words of the Markdown files by top folder, and words of comments that make a sentence hard to read.
 * A word is text between white space, as `wc -w` counts.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { argumentsOf, toggle } from '../service/command-line.ts'
import { commentBlocks, solidityComments } from '../test/support/passages.ts'

const { files: listsFiles } = argumentsOf({
  command: 'npm run count:words --',
  flags: { files: toggle('also list every Markdown file, the longest first') },
})

process.chdir(fileURLToPath(new URL('..', import.meta.url)))

/** Pages that a program writes whole: `npm run describe`, `prove`, `fuzz:deep`, `gas`. */
const GENERATED = new Set([
  'docs/operate/metrics.md',
  'docs/operate/settings.md',
  'docs/trade/commands.md',
  'docs/audit/proofs.md',
  'docs/audit/fuzz-campaign.md',
  'docs/audit/gas.md',
])

/** Patterns whose number per 1,000 words of comments is printed. The last one counts examples, of which more are better. */
const PATTERNS: Readonly<Record<string, RegExp>> = {
  what: /\bwhat\b/gi,
  whose: /\bwhose\b/gi,
  'those, ones, others': /\b(?:those|ones|others)\b/gi,
  'such as, for example': /\b(?:such as|for example)\b/gi,
}

const wordsIn = (text: string): number => text.match(/\S+/g)?.length ?? 0
const sumOf = (values: Iterable<number>): number => [...values].reduce((sum, value) => sum + value, 0)

function print(rows: readonly (readonly [name: string, value: string])[]): void {
  const width = Math.max(...rows.map(([name]) => name.length))
  const digits = Math.max(...rows.map(([, value]) => value.length))
  for (const [name, value] of rows) console.log(`  ${name.padEnd(width)}  ${value.padStart(digits)}`)
}

const rowsOf = (counts: ReadonlyMap<string, number>): [string, string][] =>
  [...counts]
    .toSorted(([, a], [, b]) => b - a)
    .map(([name, count]): [string, string] => [name, count.toLocaleString('en-US')])

const tracked = execFileSync('git', ['ls-files', '-z'], { encoding: 'utf8' }).split('\0')

// ---------------------------------------------------------------------- Markdown

const documents = new Map(
  tracked.filter((path) => path.endsWith('.md')).map((path) => [path, wordsIn(readFileSync(path, 'utf8'))]),
)
const folderOf = (path: string): string => (path.includes('/') ? (path.split('/')[0] as string) : '.')
const generated = [...documents].filter(([path]) => GENERATED.has(path))
const folders = new Map<string, number>()
for (const [path, words] of documents) folders.set(folderOf(path), (folders.get(folderOf(path)) ?? 0) + words)
const total = sumOf(documents.values())
const ofGenerated = sumOf(generated.map(([, words]) => words))

console.log('Words of Markdown by top folder:')
print([
  ...rowsOf(folders),
  ['total', total.toLocaleString('en-US')],
  ['of these generated', ofGenerated.toLocaleString('en-US')],
  ['written by hand', (total - ofGenerated).toLocaleString('en-US')],
])
if (listsFiles) {
  console.log('\nWords by file:')
  print(rowsOf(documents))
}

// ---------------------------------------------------------------------- comments

/** Generated types have comments of their generator. */
const sources = tracked.filter((path) => /\.(tsx?|sol)$/.test(path) && !path.startsWith('typechain-types/'))
const comments = sources
  .flatMap((path) => (path.endsWith('.sol') ? solidityComments(path) : commentBlocks(path)))
  .map(({ text }) => text.replace(/^\s*(?:\/\*+|\*\/|\*|\/{2,})/gm, ''))
const wordsOfComments = sumOf(comments.map(wordsIn))

console.log(`\nPer 1,000 words of comments (${wordsOfComments.toLocaleString('en-US')} words):`)
print(
  Object.entries(PATTERNS).map(([name, pattern]): [string, string] => {
    const found = sumOf(comments.map((text) => text.match(pattern)?.length ?? 0))
    return [name, ((1_000 * found) / wordsOfComments).toFixed(2)]
  }),
)
