import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { reference } from '../../cli/help.ts'
import { repositoryCommands } from '../../cli/repository/table.ts'
import { REPOSITORY_COMMANDS } from '../../cli/run.ts'
import { COMMANDS } from '../../cli/table.ts'

describe('docs/trade/commands.md', () => {
  it('is what the table of commands generates', () => {
    const expected = reference(COMMANDS)
    expect(readFileSync('docs/trade/commands.md', 'utf8'), 'run `npm run describe`').to.equal(expected)
  })

  it('has every command once, and each example begins with it', async () => {
    const commands = [...COMMANDS, ...(await repositoryCommands())]
    expect(new Set(commands.map(({ name }) => name)).size).to.equal(commands.length)
    for (const { name, example } of commands)
      expect(example).to.include(name === 'start' ? 'npm start' : name)
    const first = new Set((await repositoryCommands()).map(({ name }) => name.split(' ')[0] as string))
    for (const word of first) expect(REPOSITORY_COMMANDS).to.include(word)
  })
})
