// The small build: behaviour and transport.
import { client, VERSION } from './client'
import type { Options, Vettance } from './types'

export type * from './types'
export { VERSION }

/** Make the object that measures this page and speaks to the risk service. Nothing happens before `start`. */
export const createVettance = (options: Options): Vettance => client(options, 'core')
