import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { withTable } from '../../bench/figure-table.ts'
import { FIGURES } from '../../bench/targets.ts'

const textOf = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

describe('figures of the engine', () => {
  it('when a figure has a command, it is a script of the package', () => {
    const { scripts } = JSON.parse(textOf('package.json'))
    for (const { command } of FIGURES) expect(scripts).to.have.property(command[0] as string)
  })

  it('when lines are stored, the README shows them, and all other figures as not recorded', () => {
    const readme = textOf('bench/README.md')
    expect(readme).to.equal(withTable(readme))
    expect(FIGURES.every(({ name }) => readme.includes(`\`${name}\` |`))).to.equal(true)
  })
})
