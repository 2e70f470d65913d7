/** docs/audit/guide.md and docs/audit/proofs.md, compared with the tree. */
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { expect } from 'chai'
import { allProperties } from './proofs/properties.ts'

const GUIDE = 'docs/audit/guide.md'
const SCOPE = /(<!-- scope -->\n)[\s\S]*?(\n<!-- end -->)/

/** Lines with code: comments of both forms and blank lines do not count. */
function linesOfCode(path: string): number {
  const code = readFileSync(path, 'utf8').replaceAll(/\/\*[\s\S]*?\*\//g, '')
  return code.split('\n').filter((line) => line.replace(/\/\/.*/, '').trim() !== '').length
}

function scopeTable(): string {
  const paths = globSync('contracts/**/*.sol')
    .filter((path) => !/\/mocks\/|TestUSDM/.test(path))
    .sort()
  const counted = paths.map((path) => ({ path, lines: linesOfCode(path) }))
  const total = counted.reduce((sum, { lines }) => sum + lines, 0)
  const rows = counted.map(({ path, lines }) => `| \`${path}\` | ${lines} |`)
  return ['| file | lines |', '|---|---|', ...rows, `| **total** | **${total}** |`].join('\n')
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
  it('when a property is stated, the report has its row and no other', () => {
    const report = readFileSync('docs/audit/proofs.md', 'utf8')
    const rows = [...report.matchAll(/^\| `(\w+)` \| `(\w+)` \| (.*?) \| (?:proved|undecided) \|/gm)]
    expect(rows.map(([, library, name, statement]) => [library, name, statement])).to.deep.equal(
      allProperties().map(({ library, name, statement }) => [library, name, statement]),
    )
  })
})
