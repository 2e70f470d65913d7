/** docs/audit/guide.md and docs/audit/proofs.md, compared with the tree. */
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect } from 'chai'
import { allProperties } from './proofs/properties.ts'
import { statementsDigest } from './proofs/report.ts'

const GUIDE = 'docs/audit/guide.md'
const SCOPE = /(<!-- scope -->\n)[\s\S]*?(\n<!-- end -->)/

/** Lines with code: comments of both forms and blank lines do not count. */
function linesOfCode(path: string): number {
  const code = readFileSync(path, 'utf8').replaceAll(/\/\*[\s\S]*?\*\//g, '')
  return code.split('\n').filter((line) => line.replace(/\/\/.*/, '').trim() !== '').length
}

const row = (folder: string, paths: readonly string[]): string => {
  const lines = paths.reduce((sum, path) => sum + linesOfCode(path), 0)
  return `| ${folder} | ${paths.length} | ${lines} |`
}

/** Files and lines by folder, in the order of the folders. */
function scopeTable(): string {
  const paths = globSync('contracts/**/*.sol').filter((path) => !/\/mocks\/|TestUSDM/.test(path))
  const folders = [...new Set(paths.map((path) => dirname(path)))].sort()
  const rows = folders.map((folder) =>
    row(
      `\`${folder}/\``,
      paths.filter((path) => dirname(path) === folder),
    ),
  )
  return ['| folder | files | lines |', '|---|---|---|', ...rows, row('**total**', paths)].join('\n')
}

describe('the audit guide', () => {
  const text = () => readFileSync(GUIDE, 'utf8')

  it('when a contract changes, the table of scope has its lines', () => {
    if (process.env.UPDATE_GUIDE)
      writeFileSync(
        GUIDE,
        text().replace(SCOPE, (_, from, to) => `${from}${scopeTable()}${to}`),
      )
    expect(SCOPE.exec(text())?.[0]).to.equal(`<!-- scope -->\n${scopeTable()}\n<!-- end -->`)
  })

  it('when it names a proof, the property exists', () => {
    const names = new Set(allProperties().map(({ name }) => name))
    const proofs = [...text().matchAll(/proofs? ((?:`\w+`(?:, )?)+)/g)].flatMap(([, list = '']) =>
      [...list.matchAll(/`(\w+)`/g)].map(([, name = '']) => name),
    )
    expect(proofs.length).to.be.greaterThan(3)
    expect(proofs.filter((name) => !names.has(name))).to.deep.equal([])
  })
})

describe('the report of proofs', () => {
  it('when a property is stated, the report names it under its library with its present statement, and no other', () => {
    const report = readFileSync('docs/audit/proofs.md', 'utf8')
    const properties = allProperties()
    const named = [...report.matchAll(/^- `(\w+)`:\n((?: {2}`.*\n?)+)/gm)].flatMap(([, library, list = '']) =>
      [...list.matchAll(/^ {2}`(\w+)`/gm)].map(([, name]) => `${library}.${name}`),
    )
    expect(named.toSorted()).to.deep.equal(
      properties.map(({ library, name }) => `${library}.${name}`).toSorted(),
    )
    expect(report).to.include(`\`${statementsDigest(properties)}\``)
  })
})
