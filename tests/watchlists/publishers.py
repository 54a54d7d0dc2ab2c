"""Small lists written by hand in the publishers' formats, about people and companies that do not exist."""

# ruff: noqa: E501 - publishers do not wrap their lines.

import zipfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from vettance.watchlists.entity import Entity
from vettance.watchlists.sources.source_table import SOURCES


def read(source: str, *paths: Path) -> dict[str, Entity]:
    """Read the files of a source; entities by their id."""
    return {entity.id: entity for entity in SOURCES[source].read(source, paths)}


def write(folder: Path, name: str, text: str, encoding: str = "utf-8") -> Path:
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


SDN = """\
101,"TORVALDSEN, Mikkel Anders","individual","EXAMPLE1] [EXAMPLE2",-0- ,-0- ,-0- ,-0- ,-0- ,-0- ,-0- ,"DOB 12 Mar 1957; \
alt. DOB circa 1960; POB Bergen, Norway; nationality Norway; Gender Male; Passport N1234567 (Norway) issued 01 Jan 2010 \
expires 01 Jan 2020; National ID No. 12035712345 (Norway); a.k.a. 'THE FERRYMAN'; Linked To: NORDWIND SHIPPI"
102,"NORDWIND SHIPPING, LTD.",-0- ,"EXAMPLE1",-0- ,-0- ,-0- ,-0- ,-0- ,-0- ,-0- ,"Tax ID No. 998877665 (Norway)."
103,"GREY HERON","vessel","EXAMPLE1",-0- ,"LAZQ7","Bulk Carrier",-0- ,-0- ,"Norway",-0- ,"Vessel Registration \
Identification IMO 9074729; MMSI 257123456."
104,"LN-XYZ","aircraft","EXAMPLE1",-0- ,-0- ,-0- ,-0- ,-0- ,-0- ,-0- ,"Aircraft Manufacturer's Serial Number (MSN) 5501."
\x1a
"""
ALIASES = '101,1,"aka","TORVALDSSON, Michael",-0- \n999,2,"aka","NOBODY HERE",-0- \n'
ADDRESSES = '101,7,"Havnegate 1","Bergen","Norway",-0- \n102,8,-0- ,"Oslo","Norway",-0- \n'
COMMENTS = '101,"NG LTD; citizen Denmark."\n'


def ofac_csv(folder: Path) -> list[Path]:
    """The four files of OFAC's set, in an order that says nothing, in Windows-1252."""
    return [
        write(folder, "d.csv", COMMENTS, "cp1252"),
        write(folder, "b.csv", ALIASES, "cp1252"),
        write(folder, "a.csv", SDN, "cp1252"),
        write(folder, "c.csv", ADDRESSES, "cp1252"),
    ]


OFAC_XML = """<?xml version="1.0" standalone="yes"?>
<sdnList xmlns="https://example.org/sdn"><publshInformation><Record_Count>1</Record_Count></publshInformation>
<sdnEntry><uid>101</uid><firstName>Mikkel</firstName><lastName>TORVALDSEN</lastName><sdnType>Individual</sdnType>
<programList><program>EXAMPLE1</program></programList>
<idList><id><uid>1</uid><idType>Passport</idType><idNumber>N1234567</idNumber><idCountry>Norway</idCountry></id>
<id><uid>2</uid><idType>Gender</idType><idNumber>Male</idNumber></id></idList>
<akaList><aka><uid>3</uid><type>a.k.a.</type><category>weak</category><lastName>THE FERRYMAN</lastName></aka>
<aka><uid>4</uid><type>a.k.a.</type><category>strong</category><firstName>Michael</firstName>
<lastName>TORVALDSSON</lastName></aka></akaList>
<addressList><address><uid>5</uid><city>Bergen</city><country>Norway</country></address></addressList>
<nationalityList><nationality><uid>6</uid><country>Norway</country></nationality></nationalityList>
<dateOfBirthList><dateOfBirthItem><uid>7</uid><dateOfBirth>12 Mar 1957</dateOfBirth></dateOfBirthItem></dateOfBirthList>
</sdnEntry></sdnList>"""

OFAC_ADVANCED = """<?xml version="1.0" encoding="utf-8"?>
<Sanctions xmlns="https://example.org/ADVANCED_XML"><DateOfIssue><Year>2026</Year></DateOfIssue><ReferenceValueSets>
<AreaCodeValues><AreaCode ID="11" CountryID="1" Description="Norway">NO</AreaCode></AreaCodeValues>
<CountryValues><Country ID="1" ISO2="NO">Norway</Country><Country ID="2" ISO2="DK">Denmark</Country></CountryValues>
<DetailReferenceValues><DetailReference ID="91">Male</DetailReference></DetailReferenceValues>
<FeatureTypeValues><FeatureType ID="8">Birthdate</FeatureType><FeatureType ID="9">Place of Birth</FeatureType>
<FeatureType ID="10">Nationality Country</FeatureType><FeatureType ID="25">Location</FeatureType>
<FeatureType ID="224">Gender</FeatureType></FeatureTypeValues>
<IDRegDocTypeValues><IDRegDocType ID="1571">Passport</IDRegDocType>
<IDRegDocType ID="1626">Vessel Registration Identification</IDRegDocType></IDRegDocTypeValues>
<LocPartTypeValues><LocPartType ID="1454">CITY</LocPartType></LocPartTypeValues>
<NamePartTypeValues><NamePartType ID="1520">Last Name</NamePartType><NamePartType ID="1521">First Name</NamePartType>
<NamePartType ID="1526">Vessel Name</NamePartType></NamePartTypeValues>
<PartySubTypeValues><PartySubType ID="1" PartyTypeID="4">Vessel</PartySubType>
<PartySubType ID="4" PartyTypeID="1">Unknown</PartySubType></PartySubTypeValues>
<PartyTypeValues><PartyType ID="1">Individual</PartyType><PartyType ID="4">Transport</PartyType></PartyTypeValues>
<SanctionsTypeValues><SanctionsType ID="1">Program</SanctionsType><SanctionsType ID="2">Block</SanctionsType>
</SanctionsTypeValues></ReferenceValueSets>
<Locations><Location ID="501"><LocationAreaCode AreaCodeID="11"/><LocationPart LocPartTypeID="1454">
<LocationPartValue Primary="true"><Value>Bergen</Value></LocationPartValue></LocationPart></Location>
<Location ID="502"><LocationCountry CountryID="2"/></Location></Locations>
<IDRegDocuments><IDRegDocument ID="1" IDRegDocTypeID="1571" IdentityID="6746" IssuedBy-CountryID="1">
<IDRegistrationNo>N1234567</IDRegistrationNo></IDRegDocument><IDRegDocument ID="2" IDRegDocTypeID="1626" IdentityID="7000">
<IDRegistrationNo>IMO 9074729</IDRegistrationNo></IDRegDocument></IDRegDocuments>
<DistinctParties><DistinctParty FixedRef="101"><Comment>A fictitious man.</Comment><Profile ID="101" PartySubTypeID="4">
<Identity ID="6746" FixedRef="101" Primary="true"><Alias AliasTypeID="1403" Primary="true" LowQuality="false">
<DocumentedName ID="1"><DocumentedNamePart><NamePartValue NamePartGroupID="71" ScriptID="215">TORVALDSEN</NamePartValue>
</DocumentedNamePart><DocumentedNamePart><NamePartValue NamePartGroupID="72" ScriptID="215">Mikkel</NamePartValue>
</DocumentedNamePart></DocumentedName><DocumentedName ID="2"><DocumentedNamePart>
<NamePartValue NamePartGroupID="71" ScriptID="220">Торвальдсен</NamePartValue></DocumentedNamePart><DocumentedNamePart>
<NamePartValue NamePartGroupID="72" ScriptID="220">Миккель</NamePartValue></DocumentedNamePart></DocumentedName></Alias>
<Alias AliasTypeID="1400" Primary="false" LowQuality="true"><DocumentedName ID="3"><DocumentedNamePart>
<NamePartValue NamePartGroupID="71">THE FERRYMAN</NamePartValue></DocumentedNamePart></DocumentedName></Alias>
<NamePartGroups><MasterNamePartGroup><NamePartGroup ID="71" NamePartTypeID="1520"/></MasterNamePartGroup>
<MasterNamePartGroup><NamePartGroup ID="72" NamePartTypeID="1521"/></MasterNamePartGroup></NamePartGroups></Identity>
<Feature ID="1" FeatureTypeID="8"><FeatureVersion><DatePeriod><Start><From><Year>1957</Year><Month>3</Month><Day>12</Day>
</From></Start><End><To><Year>1957</Year><Month>3</Month><Day>12</Day></To></End></DatePeriod></FeatureVersion></Feature>
<Feature ID="2" FeatureTypeID="8"><FeatureVersion><DatePeriod><Start Approximate="true"><From><Year>1960</Year>
<Month>1</Month><Day>1</Day></From></Start><End><To><Year>1960</Year><Month>12</Month><Day>31</Day></To></End></DatePeriod>
</FeatureVersion></Feature>
<Feature ID="3" FeatureTypeID="9"><FeatureVersion><VersionDetail>Bergen, Norway</VersionDetail></FeatureVersion></Feature>
<Feature ID="4" FeatureTypeID="10"><FeatureVersion><VersionLocation LocationID="502"/></FeatureVersion></Feature>
<Feature ID="5" FeatureTypeID="25"><FeatureVersion><VersionLocation LocationID="501"/></FeatureVersion></Feature>
<Feature ID="6" FeatureTypeID="224"><FeatureVersion><VersionDetail DetailReferenceID="91"/></FeatureVersion></Feature>
</Profile></DistinctParty>
<DistinctParty FixedRef="103"><Profile ID="103" PartySubTypeID="1"><Identity ID="7000" Primary="true">
<Alias Primary="true" LowQuality="false"><DocumentedName ID="4"><DocumentedNamePart><NamePartValue NamePartGroupID="73">
GREY HERON</NamePartValue></DocumentedNamePart></DocumentedName></Alias><NamePartGroups><MasterNamePartGroup>
<NamePartGroup ID="73" NamePartTypeID="1526"/></MasterNamePartGroup></NamePartGroups></Identity></Profile></DistinctParty>
</DistinctParties><SanctionsEntries><SanctionsEntry ID="1" ProfileID="101" ListID="1550"><EntryEvent ID="1"><Date>
<Year>2020</Year><Month>2</Month><Day>3</Day></Date></EntryEvent><SanctionsMeasure SanctionsTypeID="2"/>
<SanctionsMeasure SanctionsTypeID="1"><Comment>EXAMPLE1</Comment></SanctionsMeasure></SanctionsEntry></SanctionsEntries>
</Sanctions>"""

UN = """<?xml version="1.0" encoding="UTF-8"?>
<CONSOLIDATED_LIST dateGenerated="2026-01-01T00:00:00Z"><INDIVIDUALS><INDIVIDUAL><DATAID>1</DATAID>
<FIRST_NAME>OLEKSIY</FIRST_NAME><SECOND_NAME>BEREZKO</SECOND_NAME><UN_LIST_TYPE>Example</UN_LIST_TYPE>
<REFERENCE_NUMBER>EXi.001</REFERENCE_NUMBER><LISTED_ON>2020-02-03</LISTED_ON><GENDER>Male</GENDER>
<NAME_ORIGINAL_SCRIPT>Олексій Березко</NAME_ORIGINAL_SCRIPT><COMMENTS1>Says little.</COMMENTS1>
<DESIGNATION><VALUE>Treasurer</VALUE></DESIGNATION><NATIONALITY><VALUE>Ukraine</VALUE></NATIONALITY>
<INDIVIDUAL_ALIAS><QUALITY>Good</QUALITY><ALIAS_NAME>Alexei Berezko</ALIAS_NAME></INDIVIDUAL_ALIAS>
<INDIVIDUAL_ALIAS><QUALITY>Low</QUALITY><ALIAS_NAME>Lyosha</ALIAS_NAME></INDIVIDUAL_ALIAS>
<INDIVIDUAL_ALIAS><QUALITY/><ALIAS_NAME/></INDIVIDUAL_ALIAS>
<INDIVIDUAL_ADDRESS><CITY>Odesa</CITY><COUNTRY>Ukraine</COUNTRY></INDIVIDUAL_ADDRESS>
<INDIVIDUAL_DATE_OF_BIRTH><TYPE_OF_DATE>EXACT</TYPE_OF_DATE><DATE>1971-05-06</DATE></INDIVIDUAL_DATE_OF_BIRTH>
<INDIVIDUAL_DATE_OF_BIRTH><TYPE_OF_DATE>BETWEEN</TYPE_OF_DATE><FROM_YEAR>1970</FROM_YEAR><TO_YEAR>1972</TO_YEAR>
</INDIVIDUAL_DATE_OF_BIRTH>
<INDIVIDUAL_DATE_OF_BIRTH><TYPE_OF_DATE>APPROXIMATELY</TYPE_OF_DATE><YEAR>1969</YEAR></INDIVIDUAL_DATE_OF_BIRTH>
<INDIVIDUAL_PLACE_OF_BIRTH><CITY>Kherson</CITY><COUNTRY>Ukraine</COUNTRY></INDIVIDUAL_PLACE_OF_BIRTH>
<INDIVIDUAL_DOCUMENT><TYPE_OF_DOCUMENT>Passport</TYPE_OF_DOCUMENT><NUMBER>EA123456</NUMBER>
<ISSUING_COUNTRY>Ukraine</ISSUING_COUNTRY></INDIVIDUAL_DOCUMENT></INDIVIDUAL></INDIVIDUALS>
<ENTITIES><ENTITY><DATAID>2</DATAID><FIRST_NAME>STEPPE GRAIN FRONT</FIRST_NAME>
<REFERENCE_NUMBER>EXe.001</REFERENCE_NUMBER>
<ENTITY_ALIAS><QUALITY>a.k.a.</QUALITY><ALIAS_NAME>SGF</ALIAS_NAME></ENTITY_ALIAS>
<ENTITY_ADDRESS><CITY>Odesa</CITY><COUNTRY>Ukraine</COUNTRY></ENTITY_ADDRESS></ENTITY></ENTITIES></CONSOLIDATED_LIST>"""

EU_XML = """<?xml version="1.0" encoding="UTF-8"?>
<export xmlns="http://eu.europa.ec/fpi/fsd/export" generationDate="2026-01-01T00:00:00.000+01:00">
<sanctionEntity designationDate="2021-03-04" unitedNationId="" euReferenceNumber="EU.1.2" logicalId="13">
<regulation programme="EXA" publicationDate="2021-03-05"/><subjectType code="person" classificationCode="P"/>
<nameAlias firstName="Zdenka" lastName="Havlova" wholeName="Zdenka Havlova" function="Director" gender="F" strong="true"/>
<nameAlias wholeName="Zdena" strong="false"/>
<citizenship countryIso2Code="CZ" countryDescription="CZECHIA"/>
<birthdate circa="false" birthdate="1980-07-09" city="Brno" countryDescription="CZECHIA"/>
<birthdate circa="true" year="1979"/>
<address city="Praha" countryIso2Code="CZ" countryDescription="CZECHIA"/>
<identification identificationTypeCode="passport" identificationTypeDescription="National passport" number="CZ998877"
 countryIso2Code="CZ"/></sanctionEntity></export>"""

EU_CSV = """\
fileGenerationDate;Entity_LogicalId;Entity_SubjectType;Entity_EU_ReferenceNumber;NameAlias_WholeName;NameAlias_Gender;\
BirthDate_BirthDate;Citizenship_CountryIso2Code
01/01/2026;13;P;EU.1.2;Zdenka Havlova;F;;
01/01/2026;13;P;EU.1.2;;;1980-07-09;
01/01/2026;13;P;EU.1.2;;;;CZ
01/01/2026;14;E;EU.1.3;Moravia Tool Works s.r.o.;;;
"""

EU_JSON = """{"meta": {"source": "eu"}, "data": [{"id": "EU-13", "name": "Zdenka Havlova", "type": "INDIVIDUAL",
"country": "", "details": {"aliases": ["Зденка Гавлова"], "birthDate": "1980-07-09", "nationalities": ["Czechia"]}},
{"id": "EU-14", "name": "Moravia Tool Works", "type": "ENTITY", "details": {"aliases": [], "birthDate": ""}}]}"""

OFSI = """\
Last Updated,01/01/2026,,,,,,,,,,,,,,,,,
Name 6,Name 1,Name 2,Title,DOB,Town of Birth,Country of Birth,Nationality,Passport Details,NI Number,Address 1,Address 6,\
Country,Other Information,Group Type,Alias Type,Regime,Listed On,Group ID
PEMBERLEY,Arthur,James,,00/00/1961,Leeds,United Kingdom,1) British 2) Irish,British number 502883110 issued on 3 May 2007,,\
High Street 1,London,United Kingdom,UN Ref EXi.009. A fictitious man.,Individual,Prime Alias,Example,02/03/2019,4711
PEMBERLY,Art,,,01/08/1962,,,,,,,,,,Individual,AKA,Example,02/03/2019,4711
RED KITE HOLDINGS,,,,,,,,,,,,,,Entity,Prime Alias,Example,02/03/2019,4712
"""

UKSL = """\
Report Date: 01-Jan-2026
Last Updated,Unique ID,OFSI Group ID,UN Reference Number,Name 6,Name 1,Name 2,Name type,Alias strength,\
Name non-latin script,Regime Name,Designation Type,D.O.B,Nationality(/ies),Passport number,IMO number,Gender,\
UK Statement of Reasons,Date Designated
01/01/2026,EXA0001,4711,,PEMBERLEY,Arthur,James,Primary Name,,,Example,Individual,dd/mm/1961,British,502883110,,Male,\
Because.,02/03/2019
01/01/2026,EXA0001,4711,,PEMBERLY,Art,,Alias,Low,,Example,Individual,,,,,,,
01/01/2026,EXA0002,,,GREY HERON,,,Primary Name,,,Example,Ship,,,,9074729,,,
"""

UKSL_XML = """<?xml version="1.0" encoding="utf-8"?>
<Designations><DateGenerated>2026-01-01</DateGenerated><Designation><DateDesignated>02/03/2019</DateDesignated>
<UniqueID>EXA0001</UniqueID><OFSIGroupID>4711</OFSIGroupID><UNReferenceNumber>EXi.009</UNReferenceNumber>
<Names><Name><Name1>Arthur</Name1><Name2>James</Name2><Name6>PEMBERLEY</Name6><NameType>Primary Name</NameType></Name>
<Name><Name1>Art</Name1><Name6>PEMBERLY</Name6><NameType>Alias</NameType><AliasStrength>Low Quality a.k.a</AliasStrength>
</Name></Names><NonLatinNames><NonLatinName><NameNonLatinScript>Артур Пемберли</NameNonLatinScript></NonLatinName>
</NonLatinNames><RegimeName>Example</RegimeName><IndividualEntityShip>Individual</IndividualEntityShip>
<OtherInformation>A fictitious man.</OtherInformation><UKStatementofReasons>Because.</UKStatementofReasons>
<Addresses><Address><AddressLine1>High Street 1</AddressLine1><AddressLine6>London</AddressLine6>
<AddressCountry>United Kingdom</AddressCountry></Address></Addresses>
<IndividualDetails><Individual><DOBs><DOB>dd/mm/1961</DOB><DOB>01/08/1962</DOB></DOBs>
<Nationalities><Nationality>United Kingdom</Nationality></Nationalities><PassportDetails><Passport>
<PassportNumber>502883110</PassportNumber></Passport></PassportDetails><BirthDetails><Location><TownOfBirth>Leeds
</TownOfBirth><CountryOfBirth>United Kingdom</CountryOfBirth></Location></BirthDetails><Genders><Gender>Male</Gender>
</Genders></Individual></IndividualDetails></Designation>
<Designation><UniqueID>EXA0002</UniqueID><Names><Name><Name6>GREY HERON</Name6><NameType>Primary name</NameType></Name>
</Names><IndividualEntityShip>Ship</IndividualEntityShip><ShipDetails><Ship><IMONumbers><IMONumber>9074729</IMONumber>
</IMONumbers></Ship></ShipDetails></Designation></Designations>"""

CSL = """\
_id,source,entity_number,type,programs,name,title,addresses,start_date,vessel_flag,remarks,alt_names,citizenships,\
dates_of_birth,nationalities,places_of_birth,ids
a1,Specially Designated Nationals (SDN) - Treasury Department,1,Individual,EXAMPLE,"QUIROGA, Lucia",Clerk,"Main St, \
Quito, EC",,,,"QUIROZ, Lucy",,1983-02-01,EC,"Quito, Ecuador","EC, 2020-01-01, A99887766, Passport; Female, Gender"
b2,Entity List (EL) - Bureau of Industry and Security,,,,Andes Optics SA,,,2022-01-02,,,,,,,,
"""

BIS = '"Name"\t"Street_Address"\t"City"\t"State"\t"Country"\t"Effective_Date"\t"Action"\t"FR_Citation"\n' + (
    '"WENDELL OAKES"\t"1 Elm"\t"TULSA"\t"OK"\t"US"\t"06/19/2003"\t"ADDED"\t"68 F.R. 1"\n'
    '"WENDELL OAKES"\t"2 Elm"\t"TULSA"\t"OK"\t"US"\t"06/19/2003"\t"ADDED"\t"68 F.R. 1"\n'
)

DFAT_ROWS: Sequence[Sequence[str]] = (
    ("Reference", "Name of Individual or Entity", "Type", "Name Type", "Alias Strength", "Date of Birth", "Citizenship",
     "Address", "Additional Information", "Listing Information", "IMO Number", "Committees"),
    ("7", "Bolat TASKYNBAI", "Individual", "Primary Name", "", "23456", "Kazakhstan", "Almaty, Kazakhstan",
     "EXi.044. Passport no: N07766554.", "Listed", "", "Example"),
    ("7a", "Болат Таскынбай", "Individual", "Original Script", "", "23456", "", "", "", "", "", ""),
    ("7b", "Bolya", "Individual", "Alias", "Weak", "Approximately 1965, 1966", "", "", "", "", "", ""),
    ("8", "BLUE HERON", "Vessel", "Primary Name", "", "", "", "", "", "", "9074731", ""),
)  # fmt: skip


def sheet(path: Path, rows: Sequence[Sequence[str]]) -> Path:
    """Write a workbook with one sheet: the first column as inline text, the others through the shared strings."""
    shared: dict[str, int] = {}
    lines = []
    for number, row in enumerate(rows, 1):
        cells = []
        for column, text in enumerate(row):
            place = f"{chr(65 + column)}{number}"
            if not text:
                continue
            if column == 0:
                cells.append(f'<c r="{place}" t="inlineStr"><is><t>{escape(text)}</t></is></c>')
            elif text.isdigit():
                cells.append(f'<c r="{place}"><v>{text}</v></c>')
            else:
                cells.append(f'<c r="{place}" t="s"><v>{shared.setdefault(text, len(shared))}</v></c>')
        lines.append(f'<row r="{number}">{"".join(cells)}</row>')
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    with zipfile.ZipFile(path, "w") as book:
        book.writestr(
            "xl/worksheets/sheet1.xml",
            f'<worksheet xmlns="{space}"><sheetData>{"".join(lines)}</sheetData></worksheet>',
        )
        items = "".join(f"<si><t>{escape(text)}</t></si>" for text in shared)
        book.writestr("xl/sharedStrings.xml", f'<sst xmlns="{space}">{items}</sst>')
    return path


SIMPLE = """\
id,schema,name,aliases,birth_date,countries,addresses,identifiers,sanctions,phones,emails,program_ids,dataset,first_seen
NK-1,Person,Ines Marchetti,"Ines M. Marchetti;Инес Маркетти",1975-03,it,Via Roma 1,MRC75,Example sanction,,,EX,ex_list,\
2024-01-02T00:00:00
NK-2,Vessel,Silver Tern,,,pa,,IMO9074743,,,,,ex_list,
NK-3,CryptoWallet,0xabc,,,,,,,,,,,
"""

FTM = """\
{"id": "Q1", "schema": "Person", "caption": "Ines Marchetti", "datasets": ["ex_peps"], "properties": {"name": \
["Ines Marchetti"], "weakAlias": ["Nessie"], "birthDate": ["1975-03-02"], "nationality": ["it"], "passportNumber": \
["YA1234567"], "topics": ["role.pep"], "position": ["Mayor"], "gender": ["female"]}}
{"id": "Q2", "schema": "Address", "properties": {"full": ["Via Roma 1"]}}
{"id": "Q3", "schema": "Airplane", "properties": {"name": ["I-ABCD"], "registrationNumber": ["I-ABCD"]}}
"""

OWN = """\
id,name,type,aliases,weak_aliases,birth_dates,countries,documents,reason,cities
1,Rosalind Achterberg,INDIVIDUAL,Roos Achterberg,Roosje,1969-10-11;1970,Netherlands,passport:NX1234567:NL,Chargeback ring,\
Utrecht
2,Tidewater Widgets GmbH,ORGANIZATION,,,,DE,,,
,Lorem Trading,,,,,,,,
"""
