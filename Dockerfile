# The image for Fly.io and other container hosts; without a command it runs the pair behind one port.
FROM node:22-slim
ENV NODE_ENV=production
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev
COPY . .
CMD ["node", "--import", "tsx", "boost-proxy/pair.ts"]
