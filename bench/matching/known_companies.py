"""Names of well-known companies of many countries and trades that are on none of the sanctions lists.

Written down from common knowledge. Companies that some list has (Russian and Belarusian banks, makers of
arms, Huawei) are left out, so that each one that is held is a false alarm.
"""

# Rows of names are read more easily as one long text.
# ruff: noqa: E501

_TEXT = """
Apple Inc.|Microsoft Corporation|Alphabet Inc.|Amazon.com, Inc.|Meta Platforms, Inc.|NVIDIA Corporation|Tesla, Inc.|Intel Corporation
International Business Machines|Oracle Corporation|Cisco Systems|Adobe Inc.|Salesforce, Inc.|Netflix, Inc.|Uber Technologies|Airbnb, Inc.
PayPal Holdings|Visa Inc.|Mastercard Incorporated|American Express|JPMorgan Chase|Bank of America|Wells Fargo|Citigroup Inc.
Goldman Sachs|Morgan Stanley|BlackRock, Inc.|Berkshire Hathaway|Walmart Inc.|Costco Wholesale|Target Corporation|The Home Depot
McDonald's Corporation|Starbucks Corporation|The Coca-Cola Company|PepsiCo, Inc.|Procter & Gamble|Johnson & Johnson|Pfizer Inc.|Merck & Co.
Eli Lilly and Company|Abbott Laboratories|General Electric|General Motors|Ford Motor Company|Boeing|Caterpillar Inc.|Deere & Company
Exxon Mobil|Chevron Corporation|ConocoPhillips|FedEx Corporation|United Parcel Service|Delta Air Lines|The Walt Disney Company|Comcast
Nike, Inc.|Levi Strauss & Co.|Colgate-Palmolive|Kellogg|General Mills|Mars, Incorporated|Cargill|Honeywell International
Texas Instruments|Qualcomm|Micron Technology|HP Inc.|Dell Technologies|Stripe, Inc.|Shopify Inc.|Royal Bank of Canada
Toronto-Dominion Bank|Bombardier Inc.|Canadian National Railway|Magna International|Grupo Bimbo|América Móvil|Cemex|Petrobras
Vale S.A.|Itaú Unibanco|Banco Bradesco|Embraer S.A.|Natura Cosméticos|Mercado Libre|YPF S.A.|Falabella
Ecopetrol S.A.|Avianca|Volkswagen AG|BMW AG|Mercedes-Benz Group AG|Porsche AG|Siemens AG|SAP SE
Allianz SE|Munich Re|Deutsche Bank AG|Commerzbank AG|Deutsche Telekom AG|BASF SE|Bayer AG|Henkel AG & Co. KGaA
Adidas AG|Puma SE|Robert Bosch GmbH|Continental AG|Lufthansa|Deutsche Post AG|Aldi|Lidl Stiftung
Zalando SE|Miele|Nestlé S.A.|Novartis AG|Roche Holding AG|UBS Group AG|Zurich Insurance Group|ABB Ltd
Swatch Group|Rolex SA|Lindt & Sprüngli|Holcim|Glencore plc|Red Bull GmbH|Swarovski|Erste Group Bank AG
Shell plc|BP p.l.c.|HSBC Holdings plc|Barclays PLC|Lloyds Banking Group|Standard Chartered|NatWest Group|Unilever PLC
Diageo plc|GSK plc|AstraZeneca PLC|Vodafone Group|BT Group|Tesco PLC|Sainsbury's|Marks and Spencer
Rolls-Royce Holdings|BAE Systems|Rio Tinto|Anglo American plc|British Airways|easyJet plc|Ryanair|Burberry Group
TotalEnergies SE|BNP Paribas|Société Générale|Crédit Agricole|AXA SA|LVMH Moët Hennessy|L'Oréal S.A.|Danone S.A.
Renault|Peugeot|Airbus SE|Carrefour S.A.|Auchan|Michelin|Orange S.A.|Sanofi
Capgemini|Schneider Electric|Air France-KLM|Hermès International|Kering|Decathlon|Enel S.p.A.|Eni S.p.A.
Intesa Sanpaolo|UniCredit|Ferrari N.V.|Fiat|Barilla|Ferrero|Prada S.p.A.|Luxottica
Inditex|Banco Santander|BBVA|Telefónica|Repsol|Iberdrola|Iberia|Mercadona
Philips|ING Groep|Heineken N.V.|ASML Holding|Booking Holdings|Ahold Delhaize|KLM|Adyen N.V.
Anheuser-Busch InBev|KBC Group|Solvay|IKEA|H & M Hennes & Mauritz|Volvo|Ericsson|Spotify Technology
Electrolux|Atlas Copco|Scania|Nordea Bank|Nokia Corporation|Kone|Equinor ASA|Telenor
DNB Bank ASA|Novo Nordisk|Carlsberg|LEGO|A.P. Møller – Mærsk|Danske Bank|Vestas Wind Systems|Ørsted
PKO Bank Polski|Orlen|Allegro|CD Projekt|Škoda Auto|ČEZ|OTP Bank|MOL
Toyota Motor Corporation|Honda Motor|Nissan|Sony Group Corporation|Panasonic|Hitachi|Toshiba|Mitsubishi UFJ Financial Group
Nintendo|SoftBank Group|Canon Inc.|Fujitsu|Suntory|Shiseido|Uniqlo|Rakuten
Seven & I Holdings|Komatsu|Samsung Electronics|LG Electronics|Hyundai Motor Company|Kia Corporation|SK Hynix|POSCO
Naver Corporation|Kakao|Korean Air|Alibaba Group|Tencent Holdings|JD.com|Baidu|Lenovo Group
Haier|Midea Group|BYD Company|Xiaomi|Meituan|Bank of China|Ping An Insurance|Geely
Taiwan Semiconductor Manufacturing|Foxconn|Acer|ASUS|Evergreen Marine|Singapore Airlines|DBS Bank|Singtel
Grab Holdings|CapitaLand|Petronas|Maybank|AirAsia|PTT Public Company|Charoen Pokphand|Garuda Indonesia
Jollibee Foods|San Miguel Corporation|Vingroup|Vietnam Airlines|Tata Motors|Reliance Industries|Infosys|Wipro
HDFC Bank|ICICI Bank|State Bank of India|Bharti Airtel|Mahindra & Mahindra|Larsen & Toubro|Hindustan Unilever|Flipkart
Commonwealth Bank of Australia|Westpac|BHP Group|Qantas Airways|Woolworths Group|Telstra|Fonterra|Air New Zealand
Saudi Aramco|SABIC|Emirates NBD|Etihad Airways|Qatar Airways|Emaar Properties|DP World|Almarai
Turkish Airlines|Koç Holding|Arçelik|Migros|Garanti BBVA|Teva Pharmaceutical|Check Point Software|El Al
Naspers|MTN Group|Standard Bank Group|Sasol|Shoprite|Safaricom|Dangote Cement|Ethiopian Airlines
Orascom Construction|EgyptAir|Attijariwafa Bank|Royal Air Maroc|Kenya Airways|Ecobank|Jumia|Discovery Limited
"""

#: Some three hundred names, each as it is written in print.
KNOWN_COMPANIES = tuple(name for line in _TEXT.strip().splitlines() for name in line.split("|"))
