# What comes in: this folder as .dockerignore lets it through. What goes out: the image for container hosts, whose command
# runs the pair behind one port (the Procfile has those of relay and boost alone), and with `--target dev` one that runs a
# dev chain and its builder.

FROM node:24-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
# The native packages bring their binaries: no compiler is needed.
RUN npm ci --omit=dev

FROM node:24-slim AS dev
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci
COPY tsconfig.json ./
COPY shared ./shared
COPY test/devnet ./test/devnet
USER 1000:1000
CMD ["node", "--import", "tsx", "test/devnet/chain.ts"]

FROM node:24-slim
# Without its cache tsx needs no folder that it may write to.
ENV NODE_ENV=production TSX_DISABLE_CACHE=1 PORT=8080 DATA_DIR=/data
WORKDIR /app
# For the stores where no DATABASE_URL is set: mount a volume here then.
RUN mkdir --mode=0700 /data && chown 1000:1000 /data
COPY --from=packages /app/node_modules ./node_modules
COPY LICENSE package.json tsconfig.json ./
COPY relay ./relay
COPY boost-proxy ./boost-proxy
COPY shared ./shared
# The commit, for --version and /info. Behind all that is copied, which is kept where only this changes.
ARG SOURCE_VERSION
ENV SOURCE_VERSION=${SOURCE_VERSION}
# The image's user node, as a number: hosts can see then that it is not root.
USER 1000:1000
EXPOSE 8080
# Whether it is up, not whether it would serve: one that waits for another's store is well.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.PORT + '/livez').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--max-semi-space-size=32", "--import", "tsx", "boost-proxy/pair.ts"]
