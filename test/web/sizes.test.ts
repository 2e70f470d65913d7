import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { pageDir } from '../../stack/page.ts'

const KB = 1_000

describe('web: sizes of the built page, gzipped', function () {
  this.timeout(120_000)
  let dist = ''
  before(async () => {
    dist = await pageDir(() => {})
  })

  const assets = (): readonly string[] =>
    readdirSync(join(dist, 'assets')).filter((name) => /\.(js|css)$/.test(name))
  const gzipped = (names: readonly string[]): number =>
    names.reduce((sum, name) => sum + statSync(join(dist, 'assets', `${name}.gz`)).size, 0)
  const text = (name: string): string => readFileSync(join(dist, 'assets', name), 'utf8')

  /** The file and every file that it imports statically, so that a budget cannot be met by moving code to another file. */
  function withImports(name: string, found = new Set<string>()): Set<string> {
    if (found.has(name)) return found
    found.add(name)
    for (const [, next] of text(name).matchAll(/(?:from|import)\s*["'`]\.\/([\w.-]+\.js)["'`]/g))
      withImports(next as string, found)
    return found
  }

  /** Loaded before the first screen: everything that the document names, and what that imports. */
  function entry(): ReadonlySet<string> {
    const html = readFileSync(join(dist, 'index.html'), 'utf8')
    const named = [...html.matchAll(/\/assets\/([\w.-]+\.(?:js|css))/g)].map(([, name]) => name as string)
    return new Set(named.flatMap((name) => (name.endsWith('.css') ? [name] : [...withImports(name)])))
  }

  /** Files that a part adds to those of the entry. */
  const added = (pattern: RegExp): readonly string[] => {
    const before = entry()
    const own = assets().filter((name) => pattern.test(name))
    expect(own, String(pattern)).to.have.length(1)
    return [...withImports(own[0] as string)].filter((name) => !before.has(name))
  }

  it('when the first screen is loaded, its files have at most 60 KB', () => {
    expect(gzipped([...entry()])).to.be.within(10 * KB, 60 * KB)
  })

  it('when the chart is loaded, it adds at most 65 KB', () => {
    expect(gzipped(added(/^chart-.*\.js$/))).to.be.within(10 * KB, 65 * KB)
  })

  it('when the verifier is loaded, it adds at most 20 KB, and its files never touch the document', () => {
    const verifier = added(/^worker-.*\.js$/)
    expect(gzipped(verifier)).to.be.within(10 * KB, 20 * KB)
    const worker = assets().find((name) => /^worker-/.test(name)) as string
    for (const name of withImports(worker)) expect(text(name), name).not.to.match(/\bdocument\.|\bwindow\./)
  })

  it('when a visitor opens a screen beside trading, no code of a trader is loaded', () => {
    expect(added(/^screens-.*\.js$/).filter((name) => /^(trading|chart|verifier)-/.test(name))).to.deep.equal(
      [],
    )
  })

  const isOfOperators = (name: string): boolean => name.startsWith('operate-')

  it('when everything for visitors and traders is loaded, it has at most 150 KB', () => {
    expect(gzipped(assets().filter((name) => !isOfOperators(name)))).to.be.at.most(150 * KB)
  })

  it("when the operator's view is loaded, it adds at most 5 KB", () => {
    expect(gzipped(added(/^operate-.*\.js$/))).to.be.within(1 * KB, 5 * KB)
  })

  it('when a file is named by another, it exists', () => {
    const all = new Set(assets())
    for (const name of all)
      if (name.endsWith('.js'))
        for (const next of withImports(name)) expect(all.has(next), next).to.equal(true)
  })
})
