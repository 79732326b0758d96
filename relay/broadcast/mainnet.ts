// The block builders of BUILDERS=mainnet, checked by parseBuilders like an operator's own rows. The
// addresses were not tried out, and a change of their owner would go unnoticed.
//
// An entry is active only if the builder's own public documents are current: the owner of an
// address reads the private transactions sent to it. A row's date is the last day on which a dated
// public source is known to agree with it. The source is a copy of those documents or a
// measurement. Check again before relying on an old date. An operator who knows better sets
// BUILDERS to rows of their own.

import type { BuilderInput } from "../domain/builder.ts";

/**
 * Three builders, which made 90 % of the blocks that relayscan.io counted in the week to
 * 2026-10-10.
 */
export const MAINNET_BUILDERS: readonly BuilderInput[] = [
	// Titan, 2026-09-30. Sources: https://docs.titanbuilder.xyz/llms-full.txt (addresses, privacy),
	// https://docs.titanbuilder.xyz/api/eth_sendbundle (0 to 99 %, less 21k gas of a transfer;
	// droppingTxHashes), https://docs.titanbuilder.xyz/api/eth_cancelbundle and
	// https://docs.titanbuilder.xyz/api/eth_sendrawtransaction. It is the one marked for
	// /fullprivacy: its documents promise never to unbundle and never to broadcast bundles or private
	// transactions to the mempool. A promise, not a proof; it also runs an order flow auction, at
	// another host (https://docs.novarpc.xyz/searchers/ethereum), and no document read says that this
	// one feeds it. The regional eu., us. and ap.rpc.titanbuilder.xyz are advised: this one sometimes
	// routes to the wrong region.
	{
		name: "titan",
		url: "https://rpc.titanbuilder.xyz",
		dialect: "bundle",
		fullPrivacy: true,
		refund: true,
		maxRefundPercent: 99,
		refundGas: "transfer",
		cancel: "endpoint",
		privateMethod: "eth_sendPrivateRawTransaction",
		// https://www.titanbuilder.xyz/docs (Rate limit)
		requestsPerSecond: 50,
		// https://docs.titanbuilder.xyz/ (Coinbase)
		feeRecipients: ["0x4838b106fce9647bdf1e7877bf73ce8b0bad5f97"],
		dropping: true,
	},
	// BuilderNet, 2026-09-20. Sources: https://buildernet.org/docs/send-orderflow (addresses;
	// signature required), https://buildernet.org/docs/api (1 to 99 %, less the payout's cost; empty
	// bundle cancels; droppingTxHashes; eth_sendRawTransaction is private there, tried for 5 blocks).
	// Not for /fullprivacy: a later version of https://buildernet.org/docs says that its nodes do not
	// run in TEEs during a change of security model, while every transaction goes to all nodes. Its
	// limits are per client, so connections to it should be few. No coinbases of its operators were
	// found in its documents, so nobody has a record there. Regional: direct-us., direct-eu. and
	// direct-ap.buildernet.org; each passes everything on to the others.
	{
		name: "buildernet",
		url: "https://rpc.buildernet.org",
		dialect: "bundle",
		fullPrivacy: false,
		refund: true,
		maxRefundPercent: 99,
		refundGas: "transfer",
		cancel: "empty",
		privateMethod: "eth_sendRawTransaction",
		dropping: true,
	},
	// Quasar, 2026-10-10. Sources: https://docs.quasar.win/api/eth_sendbundle (0 to 99 % of the
	// bundle's reward, no cost named; droppingTxHashes), https://docs.quasar.win/propamm/makers (this
	// host), and for the cancel
	// https://github.com/flashbots/dowg/blob/main/builder-registrations.json ("cancel-endpoint"). Its
	// method for private transactions was not found, so the one whose name cannot mean a public
	// broadcast is used: at worst a /nochecks transaction is rejected here. No promise of privacy was
	// found either, so not for /fullprivacy; nor a coinbase.
	{
		name: "quasar",
		url: "https://rpc.quasar.win",
		dialect: "bundle",
		fullPrivacy: false,
		refund: true,
		maxRefundPercent: 99,
		refundGas: 0,
		cancel: "endpoint",
		privateMethod: "eth_sendPrivateRawTransaction",
		dropping: true,
	},
];

// Known, and not active:
// - Flashbots, relay.flashbots.net: a relay that feeds BuilderNet, so nothing is gained; and a
//   private transaction
//   sent there without preferences is hinted at to searchers by default
//   (https://docs.flashbots.net/flashbots-auction/advanced/rpc-endpoint).
// - Beaverbuild, rpc.beaverbuild.org: gave up its own builder for BuilderNet on 2025-05-06;
//   documents still stand.
// - Eureka, rpc.eurekabuilder.xyz: current documents, but most of its tracing is public: by a
//   transaction's hash,
//   which bundles hold it, with their identifiers (https://docs.eurekalabs.xyz/bundle-tracing/api).
// - rsync, rsync-builder.xyz: the name had no address on 2026-10-09, and no block in that week.
// - Builder0x69, builder0x69.io: the name's delegation was broken on 2026-09-20.
// - BTCS, rpc.btcs.com: undated documents that name refunds without their fields, and another host
//   in the examples.
// - bloXroute, mev.api.blxrbdn.com: own methods, needs an account.
// - bobTheBuilder, rpc.bobthebuilder.xyz: makes blocks, but no public documents were found.
// - BuildAI, EigenPhi, Gambit Labs, JetBuilder, Loki, tbuilder: undated documents, in no count of
//   2026 that was seen.
// - Blockbeelder, boba-builder, f1b.io, Gigabuilder, payload, Penguinbuild: no current documents
//   seen.
