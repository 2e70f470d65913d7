/** Makes Hardhat's prompts fail without a terminal; otherwise the process would end silently when its input ends. */
import { definePlugin, HardhatPluginError } from 'hardhat/plugins'

/** Resolves with the answer, or throws if standard input ends first. Input from a pipe is an answer too. */
async function answered(answer: Promise<string>, subject: string): Promise<string> {
  const { stdin } = process
  if (stdin.isTTY) return answer
  let onEnd = () => {}
  const ended = new Promise<never>((_resolve, reject) => {
    onEnd = () =>
      reject(
        new HardhatPluginError(
          'clearbatch',
          `cannot prompt for "${subject}", because standard input is not a terminal: run the command in a terminal, or set the ` +
            'keys and URLs of the network as environment variables, such as MEGAETH_RPC_URL and MEGAETH_KEY (docs/deploy/README.md)',
        ),
      )
    if (stdin.readableEnded) onEnd()
    else stdin.once('end', onEnd)
  })
  try {
    return await Promise.race([answer, ended])
  } finally {
    stdin.off('end', onEnd)
  }
}

export const promptsWithoutTerminal = definePlugin({
  id: 'prompts-without-terminal',
  hookHandlers: {
    userInterruptions: async () => ({
      default: async () => ({
        requestInput: (context, interruptor, description, next) =>
          answered(next(context, interruptor, description), description),
        requestSecretInput: (context, interruptor, description, next) =>
          answered(next(context, interruptor, description), description),
      }),
    }),
  },
})
