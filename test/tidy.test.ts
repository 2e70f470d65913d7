/** What the repository's files promise to their readers. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import ts from 'typescript'
import {
  commentBlocks,
  documentLines,
  type Passage,
  solidityComments,
  testTitles,
  typescriptComments,
} from './support/passages.ts'

const MAX_FUNCTION_LINES = 70
/** A comment says one thing. A second thing stands at the function, field or constant that it is about. */
const MAX_COMMENT_LENGTH = 200
const MAX_FILE_LINES = { ts: 400, tsx: 400, sol: 500 } as const

const tracked = execFileSync('git', ['ls-files', '-z'], { encoding: 'utf8' }).split('\0').filter(existsSync)
const written = tracked.filter((path) => !/^typechain-types\/|^package-lock\.json$|\.png$/.test(path))
const modules = written.filter((path) => /\.tsx?$/.test(path))
/** In the dialect and layout that CCXT's maintainers transpile. */
const CCXT_CLASS = 'ccxt/clearbatch.ts'
/** A migration is a list of statements, not a piece of logic. */
const logic = modules.filter((path) => !path.startsWith('db/migrations/') && path !== CCXT_CLASS)

/** The heading or a type of these files has a table that is read as a whole: of prices' rules, statuses and byte offsets. */
const WITH_TABLE = [
  'domain/auction/clearing.ts',
  'domain/orders/order-state.ts',
  'domain/settlement/settlement-codec.ts',
]
const product = modules.filter((path) => !path.startsWith('test/') && !WITH_TABLE.includes(path))

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

/** Subjects that name no party, verbs of speech for what code does, and words that the glossary has replaced. */
const BANNED_WORDS = [
  ...['whoever', 'whomever', 'nobody', 'somebody', 'anybody', 'everybody', 'anyone'],
  ...['he', 'him', 'his', 'himself'],
  ...['tell', 'tells', 'telling', 'told', 'anew'],
  ...['desk', 'desks', 'door', 'doors', 'unwind', 'unwinds', 'unwinding', 'unwound', 'shard log'],
]
const BANNED = new RegExp(`\\b(${BANNED_WORDS.join('|')})\\b`, 'i')
/** The list above is the one place that needs the words. */
const prose = written.filter((path) => path !== 'test/tidy.test.ts')
const filesOfKind = (ending: string): string[] => prose.filter((path) => path.endsWith(ending))

const bannedIn = (passages: readonly Passage[]): string[] =>
  passages
    .map(({ place, text }) => ({ place, text: text.replace(/`[^`\n]*`/g, '') }))
    .filter(({ text }) => BANNED.test(text))
    .map(({ place, text }) => `${place}: "${BANNED.exec(text)?.[0]}" in ${text.trim().slice(0, 120)}`)

/** Pronouns without the noun beside them; the reader has to look for it. */
const NOUNLESS = /\b(the ones|the others|one of them)\b/i

const nounlessIn = (passages: readonly Passage[]): string[] =>
  passages.filter(({ text }) => NOUNLESS.test(text)).map(({ place, text }) => `${place}: ${text.trim()}`)

/** Words with which a comment would name no subject, such as "Of the last update" for "Index at the last update". */
const SUBJECTLESS = /^(Of|Those|Else|What|Beyond|Which)\b/

/** A title that starts with a condition goes on after a comma or a colon. */
const stopsAtCondition = (title: string): boolean =>
  /^(when|given|if|while|after|before|where|with|without)\b/i.test(title) && !/[,:]/.test(title)

describe('the repository', () => {
  it('has functions that fit a screen', () => {
    expect(logic.flatMap(longFunctions)).to.deep.equal([])
  })

  it('has files that can be read in one sitting', () => {
    const limitOf = (path: string) => MAX_FILE_LINES[path.split('.').at(-1) as keyof typeof MAX_FILE_LINES]
    // A schema is a list of tables, each of which is read alone.
    const own = written.filter((path) => path !== CCXT_CLASS && !path.startsWith('db/migrations/'))
    expect(own.filter((path) => linesOf(textOf(path)) > limitOf(path))).to.deep.equal([])
  })

  it('has one name for each thing: no default exports but those that a tool asks for', () => {
    const own = modules.filter((path) => !/\.config\.ts$|^ignition\//.test(path) && path !== CCXT_CLASS)
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

  it('names subjects and uses the words of the glossary in comments and documents', () => {
    const comments = [...filesOfKind('.ts'), ...filesOfKind('.tsx')].flatMap(typescriptComments)
    const solidity = filesOfKind('.sol').flatMap(solidityComments)
    const documents = filesOfKind('.md').flatMap(documentLines)
    expect(bannedIn([...comments, ...solidity, ...documents])).to.deep.equal([])
  })

  it('says one thing per comment, and begins with its subject', () => {
    const comments = product.flatMap(commentBlocks)
    const long = comments.filter(({ text }) => text.length > MAX_COMMENT_LENGTH)
    expect(long.map(({ place, text }) => `${place}: ${text.length} characters`)).to.deep.equal([])
    const subjectless = comments.filter(({ text }) => SUBJECTLESS.test(text))
    expect(subjectless.map(({ place, text }) => `${place}: ${text}`)).to.deep.equal([])
  })

  it('has a noun beside each pronoun in comments and titles', () => {
    const comments = [...filesOfKind('.ts'), ...filesOfKind('.tsx')].flatMap(typescriptComments)
    const titles = filesOfKind('.test.ts').flatMap(testTitles)
    expect(nounlessIn([...comments, ...titles])).to.deep.equal([])
  })

  it('titles every test with an outcome, in the words of the glossary', () => {
    const titles = filesOfKind('.test.ts').flatMap(testTitles)
    expect(titles.length).to.be.greaterThan(1000)
    expect(bannedIn(titles)).to.deep.equal([])
    const unfinished = titles.filter(({ text }) => stopsAtCondition(text))
    expect(unfinished.map(({ place, text }) => `${place}: ${text}`)).to.deep.equal([])
  })

  it('names only files and folders that exist in documents', () => {
    const own = new Set(tracked.map((path) => path.split('/')[0]))
    const missing = filesOfKind('.md').flatMap((document) =>
      [...textOf(document).matchAll(/`([\w.-]+(?:\/[\w.-]+)+\/?)`/g)]
        .map(([, path]) => path as string)
        .filter((path) => own.has(path.split('/')[0] as string))
        .filter((path) => !existsSync(path) && !existsSync(join(dirname(document), path)))
        .map((path) => `${document}: ${path}`),
    )
    expect(missing).to.deep.equal([])
  })
})
