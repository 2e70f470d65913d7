/** What the repository's files promise to their readers. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import ts from 'typescript'

const MAX_FUNCTION_LINES = 70
const MAX_FILE_LINES = { ts: 400, sol: 500 } as const

const tracked = execFileSync('git', ['ls-files', '-z'], { encoding: 'utf8' }).split('\0').filter(existsSync)
const written = tracked.filter((path) => !/^(typechain-types\/|package-lock\.json$)/.test(path))
const modules = written.filter((path) => path.endsWith('.ts'))
/** A migration is a list of statements, not a piece of logic. */
const logic = modules.filter((path) => !path.startsWith('db/migrations/'))

const textOf = (path: string): string => readFileSync(path, 'utf8')
const linesOf = (text: string): number => text.trimEnd().split('\n').length

const isGroupOfTests = ({ parent }: ts.Node): boolean =>
  ts.isCallExpression(parent) && parent.expression.getText() === 'describe'

/** Every function with its own lines: those of the functions inside it are theirs. */
function functionsOf(path: string): { start: string; lines: number }[] {
  const found: { start: string; lines: number }[] = []
  const collect = (node: ts.Node): number => {
    let inner = 0
    ts.forEachChild(node, (child) => {
      inner += collect(child)
    })
    if (!ts.isFunctionLike(node) || isGroupOfTests(node)) return inner
    const lines = linesOf(node.getText())
    found.push({ start: `${path}: ${node.getText().split('\n')[0]}`, lines: lines - inner })
    return lines
  }
  collect(ts.createSourceFile(path, textOf(path), ts.ScriptTarget.Latest, true))
  return found
}

const longFunctions = (path: string): string[] =>
  functionsOf(path)
    .filter(({ lines }) => lines > MAX_FUNCTION_LINES)
    .map(({ start }) => start)

const importsOf = (path: string): string[] =>
  ts.preProcessFile(textOf(path)).importedFiles.map((file) => file.fileName)

const filesWith = (paths: readonly string[], pattern: RegExp): string[] =>
  paths.filter((path) => pattern.test(textOf(path)))

describe('the repository', () => {
  it('has functions that fit a screen', () => {
    expect(logic.flatMap(longFunctions)).to.deep.equal([])
  })

  it('has files that can be read in one sitting', () => {
    const limitOf = (path: string) => MAX_FILE_LINES[path.split('.').at(-1) as keyof typeof MAX_FILE_LINES]
    expect(written.filter((path) => linesOf(textOf(path)) > limitOf(path))).to.deep.equal([])
  })

  it('has one name for each thing: no default exports but those that a tool asks for', () => {
    const own = modules.filter((path) => !/\.config\.ts$|^ignition\//.test(path))
    expect(filesWith(own, /^export default\b/m)).to.deep.equal([])
  })

  it('leaves nothing for later', () => {
    expect(filesWith(written, /\b(TO[D]O|FIX[M]E|X[X]X)\b/)).to.deep.equal([])
  })

  it('runs on any machine and names no package registry', () => {
    expect(filesWith(tracked, /registry\.(npmjs|yarnpkg|npmmirror)\b/)).to.deep.equal([])
    expect(filesWith(tracked, /(?<![\w.~-])\/(work|root|home|Users)\/\w/)).to.deep.equal([])
  })

  it('keeps the domain to itself', () => {
    const domain = modules.filter((path) => path.startsWith('domain/'))
    const isOwn = (path: string, name: string) =>
      name.startsWith('.') && join(dirname(path), name).startsWith('domain/')
    const strangers = domain.flatMap((path) => importsOf(path).filter((name) => !isOwn(path, name)))
    expect(strangers).to.deep.equal([])
  })
})
